import { complaintsAbout, mostWeight, weightOf } from "../../blocks/check.ts";
import { type Fields, isFields, listOf } from "../../fields.ts";
import { picturesOf } from "../../state/files.ts";
import { type Call, refuseArguments, Refused } from "./method.ts";

export interface MessageBody {
  text: string;
  blocks: Fields[];
  attachments: Fields[];
  metadata: Fields | undefined;
}

const mostText = 40_000;
const mostMetadata = 8_000;

/** The content of a message as chat.* methods take it, checked like Slack does. */
export function messageBody(call: Call): MessageBody {
  const blocks = call.json("blocks", "invalid_blocks_format");
  if (blocks !== undefined && !Array.isArray(blocks)) throw new Refused("invalid_blocks_format");
  const attachments = listOf(call.list("attachments", "invalid_attachments"));
  if (attachments.length > 100) throw new Refused("too_many_attachments");
  const markdown = call.text("markdown_text");
  if (markdown !== "" && (call.has("text") || blocks !== undefined))
    throw new Refused("markdown_text_conflict");
  if (markdown.length > 12_000) throw new Refused("msg_too_long");
  if (blocks !== undefined) {
    const complaints = complaintsAbout(blocks, "message", "/blocks", picturesOf(call.workspace));
    if (complaints.length > 0) refuseArguments("invalid_blocks", complaints);
    const { refusesBlocks } = call.workspace.rules;
    if (refusesBlocks !== undefined && blocks.length > 0) throw new Refused(refusesBlocks);
    if (weightOf({ blocks }) > mostWeight) throw new Refused("msg_blocks_too_long");
  }
  const text = linkedNames(call, call.text("text"));
  if (text.length > mostText) throw new Refused("msg_too_long");
  const list = markdown === "" ? listOf(blocks) : [{ type: "markdown", text: markdown }];
  if (text === "" && list.length === 0 && attachments.length === 0) throw new Refused("no_text");
  return { text, blocks: list, attachments, metadata: metadata(call) };
}

/** With `link_names` or `parse: full`, Slack makes bare @names into mentions. */
function linkedNames(call: Call, text: string): string {
  if (!call.flag("link_names") && call.text("parse") !== "full") return text;
  return text.replaceAll(/(?<![\w<!])@([a-z0-9._-]+)/gi, (whole, name: string) => {
    if (/^(?:channel|here|everyone)$/.test(name)) return `<!${name}>`;
    const person = [...call.workspace.people.values()].find(
      (other) => other.name === name.toLowerCase(),
    );
    return person ? `<@${person.id}>` : whole;
  });
}

/** https://docs.slack.dev/messaging/message-metadata/: an event_type and a flat-ish event_payload. */
function metadata(call: Call): Fields | undefined {
  const value = call.object("metadata", "invalid_metadata_format");
  if (value === undefined || Object.keys(value).length === 0) return value;
  if (typeof value["event_type"] !== "string" || !isFields(value["event_payload"]))
    throw new Refused("invalid_metadata_format");
  if (JSON.stringify(value).length > mostMetadata) throw new Refused("metadata_too_large");
  return value;
}
