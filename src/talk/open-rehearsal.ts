import type { ModalView } from "@slack/types";
import type { Rehearsed } from "../commands/context.ts";
import { lines, md, when } from "../messages/markdown.ts";
import { paragraph, small } from "../messages/parts.ts";
import { modal } from "../messages/views.ts";
import type { Press } from "../slack/receive/interaction.ts";
import { openView } from "./form.ts";
import { type Act, outdated } from "./gateway-context.ts";
import { type Rehearsing, rehearsalOf } from "./service-keys.ts";
import { tooSlow } from "./reply-with-error.ts";

const title = "What would happen?";

/**
 * Answers a form's “What would happen?” in a modal on top of the form, which keeps what was typed.
 * `asked` is what the form asks for.
 */
export async function openRehearsal(asked: Rehearsing, act: Act<Press>): Promise<void> {
  const { gateway } = act;
  const rehearsal = rehearsalOf.ifAny(gateway);
  if (!rehearsal) throw outdated();
  const make = async () => rehearsalView(await rehearsal.rehearse(asked, gateway), gateway.now());
  if (!(await openView(title, make, act))) throw tooSlow();
}

export function rehearsalView(
  { deed, approval, frozen, lines: rehearsedLines }: Rehearsed,
  now: number,
): ModalView {
  return modal(title, [
    paragraph(lines(md`*${deed}*`, frozen, approval, ...rehearsedLines)),
    small(
      md`Known at ${when(now, "{time}")}. Nothing was requested, sent, or counted against a limit.`,
    ),
  ]);
}
