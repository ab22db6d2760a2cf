import type { Log } from "../log.ts";
import { listAt, textAt } from "./payload.ts";
import type { Web } from "./web.ts";

/** Handles of user groups, for words only: nobody's rights follow from a name. */
export interface GroupNames {
  /** `@oncall` for `S01ONCALL`, as far as Slack has told. */
  nameOf(id: string): string | undefined;
}

const goodForMs = 600_000;

/** Asked for at most every ten minutes, in the background: a refusal doesn't wait for a nicer word. */
export function createGroupNames(web: Web, log: Log): GroupNames {
  let names = new Map<string, string>();
  let askedAt = -Infinity;

  async function ask(): Promise<void> {
    const answer = await web.call("usergroups.list");
    if (!answer.ok) return log.debug("slack.groups-unnamed", { kind: answer.kind });
    names = new Map(
      listAt(answer.data, "usergroups").map((group) => [
        textAt(group, "id"),
        `@${textAt(group, "handle") || textAt(group, "name")}`,
      ]),
    );
  }

  function refresh(): void {
    if (performance.now() - askedAt < goodForMs) return;
    askedAt = performance.now();
    ask().catch((error: unknown) => log.debug("slack.groups-unnamed", { error }));
  }
  refresh();
  return {
    nameOf(id) {
      refresh();
      return names.get(id);
    },
  };
}
