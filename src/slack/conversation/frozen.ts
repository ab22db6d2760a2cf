import { type Markdown, md } from "../../messages/text.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** Stands first in a form that is opened during a freeze. */
export async function frozenLine({
  store,
}: Pick<GatewayContext, "store">): Promise<Markdown | undefined> {
  const frozen = await store.freezeState();
  if (!frozen) return undefined;
  const why = frozen.reason ? `: ${frozen.reason}` : "";
  return md`🧊 *All changes are frozen* by ${frozen.by}${why}. Nothing runs until the freeze ends.`;
}
