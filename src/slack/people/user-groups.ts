import type { Policy } from "../../config/policy-file.ts";
import { type WebData, at, listAt, textAt, textsAt } from "../json.ts";
import type { WebAnswer } from "../web-answer.ts";
import type { Web } from "../web.ts";
import { everyoneNamed } from "../../config/named-in-policy.ts";

/** Every user group that the policy names. */
export function groupsNamedIn(policy: Policy): string[] {
  return everyoneNamed(policy).filter((id) => id.startsWith("S"));
}

export const groupsHint =
  "Report to the team that runs Gatehouse: check the groups in gatehouse.yml and the app in Slack.";

/** An active user group. Its members are set only if they were asked for and Slack says them. */
interface Group {
  called: string;
  members?: readonly string[];
}
export type Groups = ReadonlyMap<string, Group>;

/**
 * Slack's answer to `usergroups.list`, reduced to the names of active groups, and the members of
 * the groups in `counting` (https://docs.slack.dev/reference/methods/usergroups.list).
 */
export async function listGroups(
  web: Web,
  args: WebData,
  counting: readonly string[],
): Promise<WebAnswer> {
  const answer = await web.call("usergroups.list", args);
  if (!answer.ok) return answer;
  const all = listAt(answer.data, "usergroups").filter((group) => !at(group, "date_delete"));
  const groups = all.map((group) => {
    const id = textAt(group, "id");
    const users = counting.includes(id) && at(group, "users");
    const members = Array.isArray(users) ? { members: textsAt(group, "users") } : {};
    return { id, called: `@${textAt(group, "handle") || textAt(group, "name")}`, ...members };
  });
  return { ok: true, data: { groups } };
}

export const groupsIn = (data: WebData): Groups =>
  new Map(
    listAt(data, "groups").map((group): [string, Group] => {
      const called = textAt(group, "called");
      const members = Array.isArray(at(group, "members"))
        ? { members: textsAt(group, "members") }
        : {};
      return [textAt(group, "id"), { called, ...members }];
    }),
  );
