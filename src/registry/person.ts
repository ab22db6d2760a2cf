/** A person as Slack describes them now. Only a `member` (full, active, human, of this team) can change anything. */
export interface Person {
  /** Slack user ID, `U…` or `W…`. */
  id: string;
  teamId: string;
  /** Display name, never used for decisions. */
  name: string;
  kind: "member" | "guest" | "bot" | "external" | "deactivated";
  /** Lower case, without `+tag`: it shows two accounts of one person. Undefined without the scope `users:read.email`. */
  email?: string;
  /** The policy's user groups (`S…`) that this person is in. */
  groups: readonly string[];
}
