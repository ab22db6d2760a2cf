import type { AccessList } from "./access.ts";

type NameOf = ((id: string) => string | undefined) | undefined;

const mostNamed = 8;

/** People by name, groups and those without a known name as code: nobody is notified by a refusal. */
function named(entries: readonly string[], nameOf: NameOf): string {
  const shown = entries
    .filter((entry) => entry !== "*")
    .slice(0, mostNamed)
    .map((id) => nameOf?.(id)?.replaceAll("`", "'") ?? `\`${id}\``);
  const more = entries.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

/** ` They can help: Alice, S02LEADS.`, or nothing when the list names nobody. */
export function andThey(begin: string, entries: readonly string[], nameOf: NameOf): string {
  const ids = entries.filter((entry) => entry !== "*");
  return ids.length === 0 ? "" : ` ${begin}: ${named(ids, nameOf)}.`;
}

/** What to add where, and who is in the list already. */
export function addToList(list: AccessList, entries: readonly string[], nameOf: NameOf): string {
  const place = `\`access.${list}\` in gatehouse.yml`;
  if (entries.length === 0) {
    return `Nobody is in it yet: add your user id or user group to ${place}, like \`${list}: ["S01ONCALL"]\`, and restart Gatehouse.`;
  }
  return `These may: ${named(entries, nameOf)}. To join them, have your user group added to ${place}.`;
}
