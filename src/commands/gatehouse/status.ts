import type { Policy } from "../../config/policy-file.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import * as z from "zod";
import { card } from "../../messages/card.ts";
import { firstFew, hintOf, type Markdown, md, name, plain, when } from "../../messages/markdown.ts";
import { unmatchedIn } from "../../core/permit/access.ts";
import { isListed } from "../../core/permit/permit.ts";
import type { GatehouseFact } from "../../core/facts/gatehouse-fact.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";

const maxLines = 15;

const isAlarm = ({ severity }: GatehouseFact): boolean => severity === "alarm";

export const status = defineCommand({
  name: "gatehouse status",
  summary: "Show whether Gatehouse, Slack, Redis, and the compute service work",
  example: "/gatehouse status",
  class: "read",
  args: z.object({}),
  async answer(_args, context: ReadContext) {
    // An alarm comes first, wherever it stands otherwise.
    const facts = (await context.status()).toSorted(
      (a, b) => Number(isAlarm(b)) - Number(isAlarm(a)),
    );
    const isAdministrator = isListed(context.person, "administer", context);
    const unmatched = isAdministrator ? await unmatchedWords(context) : [];
    const bad = facts.filter(isAlarm).length;
    const title =
      bad === 0
        ? md`*Everything works.*`
        : md`*${bad} of ${facts.length} ${bad === 1 ? "needs" : "need"} attention.*`;
    const shown = facts.slice(0, maxLines).map((fact) => {
      const { kind, text, next, advice, since } = fact;
      const detail = next === undefined ? text : `${text}. ${next}`;
      const joined = `${detail}${detail.endsWith(".") ? " " : "; "}${advice}`;
      const words = isAdministrator && advice ? joined : detail;
      const began = since === undefined ? "" : md` (since ${when(since)})`;
      return md`${isAlarm(fact) ? "⚠️" : "✅"} *${plain(kind, 60)}*: ${hintOf(plain(words, 400))}${began}`;
    });
    return card({ title, lines: [...shown, ...unmatched] });
  },
});

/** A line for administrators about each team's entries in gatehouse.yml that match no project. */
async function unmatchedWords({
  policy,
  inventory,
}: {
  policy: Policy;
  inventory: Inventory;
}): Promise<readonly Markdown[]> {
  if (Object.keys(policy.teams).length === 0) return [];
  const known = await inventory.projects().catch(() => undefined);
  if (known === undefined) return [];
  return unmatchedIn(policy, known).map(
    ({ team, entries }) =>
      md`⚠️ Team ${name(team)}: nothing matches ${plain(firstFew(entries, 5), 200)}`,
  );
}
