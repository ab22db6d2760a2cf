import type { PersonActions } from "../actions.ts";
import type { Deliveries } from "../deliver/deliveries.ts";
import { describeSeen } from "../describe-seen.ts";
import type { Seen } from "../seen.ts";
import type { Waiting } from "../state/changes.ts";
import { personOf } from "../state/people.ts";
import { seenBy } from "../state/seen-by.ts";
import type { Workspace } from "../state/workspace.ts";
import type { Act } from "./act.ts";
import { choose, suggest } from "./choosing.ts";
import { removeMessage } from "./messaging.ts";
import { press } from "./pressing.ts";
import { openHome, pickMessageShortcut, pickShortcut } from "./shortcuts.ts";
import { close, submit } from "./submitting.ts";
import { typeText } from "./typing.ts";

/** What one person (id or handle) can do and see. */
export function personActions(
  workspace: Workspace,
  deliveries: Deliveries,
  who: string,
  waiting: Waiting,
): PersonActions {
  const person = personOf(workspace, who);
  const act: Act = { workspace, deliveries, person };
  const sees = () => seenBy(workspace, person.id);
  return {
    id: person.id,
    name: person.name,
    types: (channel, text, options) => typeText(act, channel, text, options),
    presses: (button, options) => press(act, button, options),
    chooses: (element, choice, options) => choose(act, element, choice, options),
    suggests: (element, typed, options) => suggest(act, element, typed, options),
    submits: (values) => submit(act, values),
    closes: (options) => close(act, options),
    opensHome: () => openHome(act),
    picksShortcut: (shortcut, channel) => pickShortcut(act, shortcut, channel),
    picksMessageShortcut: (shortcut, ts) => pickMessageShortcut(act, shortcut, ts),
    deletesMessage: async (ts) => removeMessage(act, ts),
    dismissesToasts: () => {
      workspace.toasts.delete(person.id);
      workspace.changed();
    },
    sees,
    seesChannel: (name) => {
      const wanted = name.replace(/^[@#]/, "");
      const found = sees().channels.find(
        (channel) => channel.id === wanted || channel.name === wanted,
      );
      if (!found) throw new Error(`${person.name} sees no channel ${name}`);
      return found;
    },
    mentions: () => sees().inbox.filter(({ because }) => because !== "direct"),
    until: (wanted) => {
      const look = (): Seen | undefined => {
        const seen = sees();
        return wanted(seen) ? seen : undefined;
      };
      const explain = () =>
        `${person.name} wanted ${String(wanted)} and saw:\n${describeSeen(sees())}${waiting.explain()}`;
      return workspace.changes.until(look, waiting.patience, explain);
    },
  };
}
