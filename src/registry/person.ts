/**
 * Whoever typed or pressed, as Slack describes them right now. Only a `member` (full, active, human, of our team)
 * may ever change anything; the other kinds exist so that a refusal can say why.
 */
export interface Person {
  /** Slack user id, `U…` or `W…`. */
  id: string;
  teamId: string;
  /** Display name: for reading only, never for deciding. */
  name: string;
  kind: "member" | "guest" | "bot" | "external" | "deactivated";
  /** The user groups (`S…`) of the policy that this person is in. */
  groups: readonly string[];
}
