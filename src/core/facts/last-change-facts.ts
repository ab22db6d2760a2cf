import { type Markdown, md, name, timeNear } from "../../messages/markdown.ts";
import { type ChangeCommand, type Target, calledName, requestable } from "../../registry/define.ts";
import { changeWords } from "../cards/since-request.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import type { Fact, FactSource } from "./fact.ts";

/** An older change explains nothing that is seen now (ms). */
const recentMs = 24 * 3600_000;

/** The last change of a target that was made with Gatehouse. */
export interface LastChangeFact extends Fact {
  kind: "last change";
  /** `olivia restarted it`: for a message that names the target beside it. */
  deed: Markdown;
  /** When it ended, or nobody could tell any more how (ms). */
  since: number;
  request: string;
}

export const isLastChange = (fact: Fact): fact is LastChangeFact => fact.kind === "last change";

/** Says what changed a target last. Knows nothing where the reader doesn't tell what was before. */
export const lastChangeFacts: FactSource = {
  name: "the last change",
  async read({ targets, tellsRecent, requests, commands, now }) {
    if (!tellsRecent) return [];
    const changes = requestable(commands);
    const read = targets.map(async (target) =>
      lastChangeIn(await requests.on(target.id), { target, commands: changes, now }),
    );
    return (await Promise.all(read)).filter((fact) => fact !== undefined);
  },
};

/** The newest of these requests that changed the target, or whose outcome is unknown. Pure. */
export function lastChangeIn(
  requests: readonly StoredRequest[],
  about: { target: Target; commands: readonly ChangeCommand[]; now: number },
): LastChangeFact | undefined {
  const { target, commands, now } = about;
  const changes = requests.flatMap((request): LastChangeFact[] => {
    const { record, changedAt: since } = request;
    const command = commands.find((candidate) => candidate.name === record.command);
    const deed = command && changeWords(request, command, record.target.id);
    if (!deed || now - since > recentMs) return [];
    return [
      {
        kind: "last change",
        about: target,
        severity: "info",
        sign: "🕒",
        text: md`The last change of ${name(calledName(target))} with Gatehouse: ${deed}, ${timeNear(since, now)}.`,
        deed,
        since,
        request: record.id,
      },
    ];
  });
  return changes.toSorted((a, b) => b.since - a.since)[0];
}
