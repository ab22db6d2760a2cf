import type { View } from "@slack/types";
import { UserError } from "../errors.ts";
import { plainText, section } from "../messages/message.ts";
import { md, name } from "../messages/text.ts";
import type { StoredRequest } from "../requests/record.ts";
import type { Ask } from "./ask.ts";
import { at, parseJson, textAt } from "./payload.ts";
import { noteRefusal, refusalOf } from "./refuse.ts";
import { isChange, type Talk } from "./talk.ts";
import { askedFor } from "./vote.ts";

type Submission = Extract<Ask, { kind: "submission" }>;

export const verdictCallback = "verdict";

/** Asks why, before somebody's word settles an unknown outcome. */
export function reasonModal(request: StoredRequest, happened: boolean): View {
  const { record } = request;
  return {
    type: "modal",
    callback_id: verdictCallback,
    private_metadata: JSON.stringify({ request: record.id, happened }),
    title: plainText(happened ? "It happened" : "It did not happen", 24),
    submit: plainText("Record it", 24),
    close: plainText("Back", 24),
    blocks: [
      section(
        md`${record.command} of ${name(record.target.name)} (${name(record.id)}) will be recorded as ${
          happened ? "done" : "not done"
        }, on your word, and ${name(record.target.name)} is free for changes again.`,
      ),
      {
        type: "input",
        block_id: "reason",
        label: plainText("Reason"),
        hint: plainText("What did you look at? It stands in the audit trail."),
        element: {
          type: "plain_text_input",
          action_id: "reason",
          multiline: true,
          min_length: 3,
          max_length: 500,
        },
      },
    ],
  };
}

/** Settles an unknown outcome on a person's word. Errors appear on the field. */
export async function settleByWord(
  ask: Submission,
  talk: Talk,
): Promise<{ errors: Record<string, string> } | undefined> {
  try {
    const asked = parseJson(ask.privateMetadata);
    const happened = at(asked, "happened") === true;
    const reason = String(ask.values["reason"] ?? "").trim();
    if (reason.length < 3) return field("Please say what you looked at.");
    const request = await talk.store.get(textAt(asked, "request"));
    const command = talk.commands.find(({ name: known }) => known === request?.record.command);
    if (!request || !command || !isChange(command))
      return field("This request is no longer known.");
    if (request.state !== "unknown") return field(`This was settled meanwhile: ${request.state}.`);
    const person = await talk.person(ask.userId, ask.teamId, { fresh: true });
    const askedNow = askedFor(request, command, person);
    const refused = refusalOf(askedNow, talk);
    if (refused) {
      await noteRefusal(askedNow, `verdict: ${refused.rule}`, talk);
      return field(refused.text);
    }
    const moved = await talk.store.move(request, {
      state: happened ? "done" : "not-applied",
      progress: { ...request.progress, decidedBy: { id: person.id, name: person.name, reason } },
      why: `${happened ? "it happened" : "it did not happen"}, says ${person.id}: ${reason}`,
      actor: person.id,
    });
    if (moved.is !== "moved") return field("It moved on just now. Please look again.");
    talk.nudge();
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return field(error.message);
    throw error;
  }
}

/** An error on the only field there is. */
function field(text: string): { errors: Record<string, string> } {
  return { errors: { reason: text } };
}
