import type { HomeView, ModalView } from "@slack/types";
import type { Block } from "./blocks.ts";
import { type Part, blocksIn } from "./card.ts";
import { inputBlock } from "./input-elements.ts";
import type { InputPart } from "./inputs.ts";
import { blocksInWords } from "./plain-text.ts";
import { plainText } from "./text-objects.ts";

/** What a form may consist of. */
export type FormPart = Part | InputPart;

/** How a form is submitted. */
interface Submission {
  /** Names the handler of what is submitted. */
  callback: string;
  /** Comes back with what is submitted: names and IDs only, because everything is decided again. */
  metadata: object;
  /** The labels of the buttons. */
  submit: string;
  close?: string;
}

/** The most characters of a modal's title and of its buttons. */
const mostInTitle = 24;

/** Makes the modal of a form; without `form`, of a text that can only be closed. */
export function modal(title: string, parts: readonly FormPart[], form?: Submission): ModalView {
  return {
    type: "modal",
    title: plainText(title, mostInTitle),
    close: plainText(form ? (form.close ?? "Cancel") : "Close", mostInTitle),
    ...(form && {
      callback_id: form.callback,
      private_metadata: JSON.stringify(form.metadata),
      submit: plainText(form.submit, mostInTitle),
    }),
    // @slack/types lacks charts, which no form has.
    blocks: parts.flatMap(formBlocks) as ModalView["blocks"],
  };
}

const isInput = (part: FormPart): part is InputPart =>
  part !== undefined && "kind" in part && part.kind === "input";

const formBlocks = (part: FormPart): readonly Block[] =>
  isInput(part) ? [inputBlock(part)] : blocksIn([part]);

/** The most blocks of the Home tab. */
const mostOnHome = 100;

/** Makes the Home tab. */
export const homeView = (parts: readonly Part[]): HomeView => homeOf(blocksIn(parts));

/**
 * The Home tab with its charts and tables as text, for when Slack refuses them. Undefined when it
 * has none.
 */
export function homeInWords(parts: readonly Part[]): HomeView | undefined {
  const words = blocksInWords(blocksIn(parts));
  return words && homeOf(words);
}

const homeOf = (blocks: readonly Block[]): HomeView => ({
  type: "home",
  // @slack/types lacks charts.
  blocks: blocks.slice(0, mostOnHome) as HomeView["blocks"],
});
