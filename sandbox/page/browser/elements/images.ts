import { type Fields, fieldsOf, textOf } from "../../../slack/fields.ts";
import type { SeenFile } from "../../../slack/seen.ts";
import { el, link, safeUrl, icon } from "../dom/dom.ts";
import type { Surface } from "./surface.ts";

/** Where the page serves a file from: it fetches it with the right of this person to see it. */
function fileAddress(file: SeenFile, personId: string): string {
  return `/files/${encodeURIComponent(file.id)}?as=${encodeURIComponent(personId)}`;
}

/** A picture named by address or by file. What can't be shown is said in its alternative text. */
export function drawImage(image: Fields, surface: Surface, size: "thumb" | "full"): HTMLElement {
  const alt = textOf(image["alt_text"]);
  const address = addressOf(image, surface);
  if (address === undefined)
    return el("span", { class: "image-missing" }, icon("file"), alt || "Missing picture");
  const picture = el("img", {
    src: address,
    alt,
    class: size,
    loading: "lazy",
    referrerpolicy: "no-referrer",
  });
  picture.addEventListener("error", () =>
    picture.replaceWith(el("span", { class: "image-missing" }, icon("file"), alt || "Picture")),
  );
  return size === "thumb"
    ? picture
    : el(
        "a",
        { href: address, target: "_blank", rel: "noopener noreferrer", class: "image-link" },
        picture,
      );
}

function addressOf(image: Fields, { seen }: Surface): string | undefined {
  const source = fieldsOf(image["slack_file"]);
  const id = textOf(source["id"]) || (/-(F[A-Z0-9]+)\//.exec(textOf(source["url"]))?.[1] ?? "");
  const file = Object.hasOwn(seen.files, id) ? seen.files[id] : undefined;
  return file ? fileAddress(file, seen.me.id) : safeUrl(textOf(image["image_url"]));
}

/** A file of a message: a picture is shown, anything else can be downloaded. */
export function drawFile(file: SeenFile, personId: string): HTMLElement {
  const address = fileAddress(file, personId);
  if (/^image\/(?:png|jpeg|gif)$/.test(file.mimetype)) {
    return el(
      "figure",
      { class: "file-picture" },
      el("figcaption", {}, file.title || file.name),
      el(
        "a",
        { href: address, target: "_blank", rel: "noopener noreferrer", class: "image-link" },
        el("img", {
          src: address,
          alt: file.altText || file.title || file.name,
          class: "full",
          loading: "lazy",
        }),
      ),
    );
  }
  return el(
    "a",
    { class: "file-card", href: address, download: file.name },
    icon("file"),
    el(
      "span",
      {},
      el("b", {}, file.title || file.name),
      el("small", {}, `${file.name} · ${sizeOf(file.size)}`),
    ),
  );
}

function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000
    ? `${Math.round(bytes / 1000)} kB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function drawVideo(block: Fields): HTMLElement {
  return el(
    "p",
    { class: "video" },
    link(
      textOf(block["title_url"]) || textOf(block["video_url"]),
      textOf(fieldsOf(block["title"])["text"]) || textOf(block["alt_text"]),
    ),
  );
}
