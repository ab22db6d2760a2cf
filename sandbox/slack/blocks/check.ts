import type * as z from "zod";
import { type Fields, fieldsOf, isFields, listOf, textOf } from "../fields.ts";
import { shapes } from "./shapes.ts";
import { elementsIn } from "./walk.ts";

export type Surface = "message" | "modal" | "home";

/** Where each block may stand; what isn't named may stand anywhere. */
const surfaces: Partial<Record<string, readonly Surface[]>> = {
  alert: ["modal"],
  carousel: ["message", "home"],
  container: ["message", "home"],
  context_actions: ["message"],
  data_table: ["message", "home"],
  data_visualization: ["message"],
  file: ["message"],
  markdown: ["message"],
  plan: ["message"],
  table: ["message", "home"],
  task_card: ["message"],
};

const modalOnlyInputs: readonly string[] = [
  "email_text_input",
  "url_text_input",
  "number_input",
  "file_input",
];

const mostBlocks: Record<Surface, number> = { message: 50, modal: 100, home: 100 };

/**
 * What Slack would refuse about these blocks, in its own words ("… [json-pointer:/blocks/0/text]"); empty when fine.
 * `at` is where the blocks stand in the arguments: "/blocks", "/view/blocks". `isPicture` says which uploaded files an
 * image block may show.
 */
export function complaintsAbout(
  blocks: unknown,
  surface: Surface,
  at: string,
  isPicture: (fileId: string) => boolean,
): string[] {
  if (!Array.isArray(blocks)) return [`must provide an array [json-pointer:${at}]`];
  if (blocks.length > mostBlocks[surface]) {
    return [`no more than ${mostBlocks[surface]} items allowed [json-pointer:${at}]`];
  }
  const shape = blocks.flatMap((block, index) => aboutBlock(block, surface, `${at}/${index}`));
  if (shape.length > 0) return shape;
  const list = listOf(blocks);
  return [...aboutIds(list, at), ...aboutSums(list, at), ...aboutFiles(list, at, isPicture)];
}

function aboutBlock(block: unknown, surface: Surface, at: string): string[] {
  const type = textOf(fieldsOf(block)["type"]);
  const shape = Object.entries(shapes).find(([name]) => name === type);
  if (!isFields(block) || !shape)
    return [`unsupported type: ${type || "undefined"} [json-pointer:${at}/type]`];
  const [name, schema] = shape;
  const allowed = surfaces[name];
  if (allowed && !allowed.includes(surface)) {
    return [`block type ${type} is not supported in a ${surface} [json-pointer:${at}/type]`];
  }
  const element = textOf(fieldsOf(block["element"])["type"]);
  if (type === "input" && surface === "message" && modalOnlyInputs.includes(element)) {
    return [`unsupported type: ${element} [json-pointer:${at}/element/type]`];
  }
  const parsed = schema.safeParse(block);
  return parsed.success ? [] : parsed.error.issues.flatMap((issue) => words(issue, at));
}

function words(issue: z.core.$ZodIssue, at: string): string[] {
  const path = [at, ...issue.path.map(String)].join("/");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `invalid additional property: ${key} [json-pointer:${path}]`);
  }
  if (
    issue.code === "invalid_type" &&
    issue.input === undefined &&
    issue.message.includes("received undefined")
  ) {
    const parent = [at, ...issue.path.slice(0, -1).map(String)].join("/");
    return [`missing required field: ${String(issue.path.at(-1))} [json-pointer:${parent}]`];
  }
  if (issue.code === "invalid_union") return [`unsupported type [json-pointer:${path}]`];
  return [`${issue.message} [json-pointer:${path}]`];
}

/** Block ids must differ in one message or view, action ids within one block. */
function aboutIds(blocks: readonly Fields[], at: string): string[] {
  const complaints: string[] = [];
  const blockIds = new Set<string>();
  for (const [index, block] of blocks.entries()) {
    const id = block["block_id"];
    if (typeof id === "string") {
      if (blockIds.has(id))
        complaints.push(`block_id "${id}" already exists [json-pointer:${at}/${index}/block_id]`);
      blockIds.add(id);
    }
    const actionIds = new Set<string>();
    for (const { actionId } of elementsIn([block])) {
      if (actionId === "") continue;
      if (actionIds.has(actionId)) {
        complaints.push(`action_id "${actionId}" already exists [json-pointer:${at}/${index}]`);
      }
      actionIds.add(actionId);
    }
  }
  return complaints;
}

/** Limits over all blocks together. */
function aboutSums(blocks: readonly Fields[], at: string): string[] {
  const complaints: string[] = [];
  const ofType = (type: string) => blocks.filter((block) => block["type"] === type);
  const markdown = ofType("markdown").reduce((sum, block) => sum + textOf(block["text"]).length, 0);
  if (markdown > 12_000)
    complaints.push(
      `markdown blocks must be less than 12001 characters together [json-pointer:${at}]`,
    );
  if (ofType("table").length > 1) complaints.push(`only_one_table_allowed [json-pointer:${at}]`);
  if (ofType("data_visualization").length > 2)
    complaints.push(`no more than 2 data_visualization blocks allowed [json-pointer:${at}]`);
  const most = { table: 10_000, data_table: 20_000 };
  for (const [type, limit] of Object.entries(most)) {
    const cells = ofType(type).flatMap((block) =>
      Array.isArray(block["rows"]) ? block["rows"].flatMap(listOf) : [],
    );
    const characters = cells.reduce((sum, cell) => sum + textOf(cell["text"]).length, 0);
    if (characters > limit)
      complaints.push(`${type} must be less than ${limit + 1} characters [json-pointer:${at}]`);
  }
  return complaints;
}

/** Slack's, as people measured it: bolt-js issues 2509 and 2867. It is documented nowhere. */
export const mostWeight = 12_000;
const blockWeight = 125;
const namesOnly = new Set(["type", "block_id", "action_id", "style", "value", "url"]);

/** The characters that these blocks show, and what each block weighs by itself, in a container too. */
export function weightOf(value: unknown, key = ""): number {
  if (typeof value === "string") return namesOnly.has(key) ? 0 : value.length;
  if (Array.isArray(value)) {
    const own = key === "blocks" || key === "child_blocks" ? value.length * blockWeight : 0;
    return value.reduce<number>((sum, item) => sum + weightOf(item), own);
  }
  if (!isFields(value)) return 0;
  return Object.entries(value).reduce((sum, [name, item]) => sum + weightOf(item, name), 0);
}

/** An image may only show a file that was completed, processed, and is a picture. */
function aboutFiles(value: unknown, at: string, isPicture: (fileId: string) => boolean): string[] {
  if (Array.isArray(value))
    return value.flatMap((item, index) => aboutFiles(item, `${at}/${index}`, isPicture));
  if (!isFields(value)) return [];
  const inner = Object.entries(value).flatMap(([key, item]) =>
    typeof item === "object" ? aboutFiles(item, `${at}/${key}`, isPicture) : [],
  );
  if (!isFields(value["slack_file"])) return inner;
  const { id, url } = value["slack_file"];
  const wanted = textOf(id) || /-(F[A-Z0-9]+)\//.exec(textOf(url))?.[1];
  return wanted !== undefined && isPicture(wanted)
    ? inner
    : [...inner, `invalid slack file [json-pointer:${at}/slack_file]`];
}
