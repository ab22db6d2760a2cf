import { type Origin, pressOf } from "../core/request/origin.ts";
import type { Interaction } from "../slack/receive/interaction.ts";
import type { BeforeAck } from "./gateway-context.ts";

/**
 * Origin of a request that this act makes: the button, alert or proposal named in `act.origin`,
 * otherwise the interaction itself.
 */
export const originOf = ({ interaction, origin }: BeforeAck): Origin =>
  origin ?? originOfInteraction(interaction);

export function originOfInteraction(interaction: Interaction): Origin {
  const { id, kind } = interaction;
  if (kind === "button") {
    const { messageTs } = interaction;
    // The Home tab has no message that could identify the button, so each press there is a new one.
    const press = messageTs === undefined ? id : pressOf({ ...interaction, messageTs });
    return { kind: "button", press };
  }
  if (kind === "submission") return { kind: "form", interaction: id };
  return { kind: kind === "mention" ? "mention" : "typed", interaction: id };
}
