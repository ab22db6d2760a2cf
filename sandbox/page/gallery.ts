/**
 * The gallery shows what an app can say, without anybody having asked for it. Types only, so that a
 * browser can import this file too; whoever starts the page makes the cards.
 */
import type { Seen } from "../slack/seen.ts";

export interface GalleryCard {
  /** Cards of one group stand together. */
  group: string;
  name: string;
  /** Whom it notifies, and what a locked phone then shows. */
  push?: { reader: string; text: string } | undefined;
  /** As the app sends it: a message, a modal, or a Home tab. */
  shown:
    | { text: string; blocks: readonly object[] }
    | { type: "modal" | "home"; blocks: readonly object[] };
}

/** `long`: names and reasons are as long as they come. */
export type MakeCards = (names: "usual" | "long") => Promise<readonly GalleryCard[]>;

/** What the browser gets: each card with its words alone, and what names mean. */
export interface Gallery {
  seen: Seen;
  cards: readonly (GalleryCard & { words: string })[];
}
