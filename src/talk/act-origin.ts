import { type Origin, pressOf } from "../core/request/origin.ts";
import type { Interaction } from "../slack/receive/interaction.ts";
import type { BeforeAck } from "./gateway-context.ts";

/** Where a request comes from that this act makes: the button that says so, or else what the person did. */
export const originOf = ({ interaction, origin }: BeforeAck): Origin =>
  origin ?? originOfInteraction(interaction);

export function originOfInteraction(interaction: Interaction): Origin {
  const { id, kind } = interaction;
  if (kind === "button") {
    const { messageTs } = interaction;
    // On the Home tab each press is one of its own
    const press = messageTs === undefined ? id : pressOf({ ...interaction, messageTs });
    return { kind: "button", press };
  }
  if (kind === "submission") return { kind: "form", interaction: id };
  return { kind: kind === "mention" ? "mention" : "typed", interaction: id };
}
