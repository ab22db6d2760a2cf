/// <reference lib="dom" />

/**
 * Everything on the page is made here, from nodes: text goes in as text, so nothing anybody wrote can become markup.
 * There is no innerHTML anywhere in this folder.
 */

export type Child = Node | string | number | false | undefined | null | readonly Child[];
type Listener = (event: Event) => unknown;
type Attribute = string | number | boolean | undefined | null | Listener;

/** An element. Attributes whose name begins with `on` are listeners; `true` is an empty attribute, `false` is none. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, Attribute>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  append(node, children);
  return node;
}

export function svg(
  tag: string,
  attributes: Readonly<Record<string, Attribute>> = {},
  ...children: readonly Child[]
): SVGElement {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(node, attributes);
  append(node, children);
  return node;
}

function setAttributes(node: Element, attributes: Readonly<Record<string, Attribute>>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") {
      node.addEventListener(name.replace(/^on/, ""), (event) => void value(event));
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

function append(node: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (child instanceof Node) node.append(child);
    else if (typeof child === "string" || typeof child === "number") node.append(String(child));
    else append(node, child);
  }
}

/** Addresses a person may follow. Anything else (javascript:, data:, file:) is not made a link. */
export function safeUrl(address: string): string | undefined {
  try {
    const { protocol, href } = new URL(address);
    return ["https:", "http:", "mailto:", "tel:"].includes(protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}

/** A link that opens beside the page, or only its words when the address isn't one to follow. */
export function link(address: string, ...words: readonly Child[]): HTMLElement {
  const href = safeUrl(address);
  return href === undefined
    ? el("span", {}, ...words)
    : el("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...words);
}

/** One thing of a list that is drawn again only when its signature changes. */
export interface Keyed {
  key: string;
  signature: string;
  draw: () => HTMLElement;
}

interface Drawn {
  key: string;
  signature: string;
}
const drawn = new WeakMap<Element, Drawn>();

/** Makes the container hold exactly these, keeping what hasn't changed: focus, scrolling and open menus survive. */
export function drawKeyed(container: HTMLElement, items: readonly Keyed[]): void {
  const known = new Map<string, HTMLElement>();
  for (const child of container.children) {
    const was = drawn.get(child);
    if (was && child instanceof HTMLElement) known.set(was.key, child);
  }
  const refocus = rememberFocus(container);
  const wanted = items.map(({ key, signature, draw }) => {
    const old = known.get(key);
    if (old && drawn.get(old)?.signature === signature) return old;
    const fresh = draw();
    drawn.set(fresh, { key, signature });
    return fresh;
  });
  const kept = new Set<Element>(wanted);
  for (const child of Array.from(container.children)) if (!kept.has(child)) child.remove();
  let next = container.firstElementChild;
  for (const node of wanted) {
    if (node === next) next = next.nextElementSibling;
    else container.insertBefore(node, next);
  }
  refocus();
}

/** What had the focus has it again after a redraw: elements say who they are with `data-focus`. */
function rememberFocus(container: HTMLElement): () => void {
  const active = document.activeElement;
  if (!(active instanceof HTMLElement) || !container.contains(active)) return () => {};
  const key = active.dataset["focus"];
  const caret =
    active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement
      ? active.selectionEnd
      : null;
  return () => {
    if (active.isConnected || key === undefined) return;
    const again = container.querySelector<HTMLElement>(`[data-focus="${CSS.escape(key)}"]`);
    again?.focus({ preventScroll: true });
    if (
      caret !== null &&
      (again instanceof HTMLInputElement || again instanceof HTMLTextAreaElement)
    ) {
      again.setSelectionRange(caret, caret);
    }
  };
}

let ids = 0;
/** A fresh id, to tie a label to what it names. */
export function newId(): string {
  ids += 1;
  return `n${ids}`;
}

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
