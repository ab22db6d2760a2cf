import type { Outcome } from "../actions.ts";
import { closedPayload } from "../payloads.ts";
import { modalsOf } from "../views.ts";
import { type Act, mustBeActive, nothingSent, outcomeOf } from "./act.ts";

/** Closes the modal on top, or the whole stack; the app hears of the views that asked for it. */
export async function close(act: Act, { all = false }: { all?: boolean } = {}): Promise<Outcome> {
  mustBeActive(act);
  const { workspace, person, deliveries } = act;
  const stack = modalsOf(workspace, person.id);
  const top = stack.at(-1);
  if (!top) throw new Error(`${person.name} has no modal open`);
  const cleared = all || top.clearOnClose;
  const closed = cleared ? stack.splice(0).toReversed() : stack.splice(-1);
  workspace.changed();
  let last = nothingSent;
  for (const view of closed.filter(({ notifyOnClose }) => notifyOnClose)) {
    last = outcomeOf(
      await deliveries.deliver(
        "interaction",
        closedPayload(workspace, person, view, cleared),
        false,
      ),
    );
  }
  return last;
}
