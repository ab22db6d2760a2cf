import { svg } from "./dom.ts";

/** Small line drawings on a 16 × 16 grid, in the colour of the text around them. */
const paths = {
  back: "M10 3 5 8l5 5",
  bolt: "M9 1.5 3.5 9H8l-1 5.5L12.5 7H8z",
  channel: "M6 2.5 4.5 13.5M11.5 2.5 10 13.5M2.5 5.5h11M2 10.5h11",
  cloud: "M4.5 12.5a3 3 0 0 1 .3-6 4 4 0 0 1 7.6 1A2.5 2.5 0 0 1 12 12.5z",
  close: "m4 4 8 8M12 4l-8 8",
  down: "m4 6 4 4 4-4",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  file: "M4 1.5h5l3 3v10H4zM9 1.5v3h3",
  home: "M2 8 8 2.5 14 8M4 6.5v7h8v-7",
  lock: "M4 7h8v6.5H4zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  menu: "M2 4h12M2 8h12M2 12h12",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  lamp: "M6 13.5h4M6.5 11.5c0-1.8-2-2.6-2-5a3.5 3.5 0 0 1 7 0c0 2.4-2 3.2-2 5z",
  open: "M9.5 2.5h4v4M13.5 2.5 7 9M12 9v4.5H2.5V4H7",
  reply: "M2 3h12v8H7.5L4 14v-3H2z",
  send: "M2 2.5 14 8 2 13.5 4 8zM4 8h5",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
} as const;

export function icon(name: keyof typeof paths): SVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true" },
    svg("path", { d: paths[name] }),
  );
}
