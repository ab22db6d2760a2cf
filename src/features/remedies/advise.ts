import type { ChangeCommand } from "../../registry/define.ts";
import { seesUnder } from "../../core/permit/access.ts";
import type { RemedyPart } from "../alert-part.ts";
import { type PastAttempt, firesStill, sumUp } from "./judge-remedy.ts";
import type { Remedies, StoredRemedy } from "./remedies.ts";
import { adviceOn } from "./render-remedy.ts";

/** Attempts at one alert that were judged, in the same order. */
export const pastOf = (remedies: readonly StoredRemedy[], alertName: string): PastAttempt[] =>
  remedies.flatMap(({ record: { command }, judgment }) => {
    const verdict = judgment?.verdicts[alertName];
    return judgment && verdict ? [{ command, verdict, at: judgment.changedAt }] : [];
  });

/** The alerts of a VM of which earlier attempts are read, and the sentences at most. */
const mostNames = 3;
const mostAdvice = 2;
/** The newest attempts of a group that are judged again. */
const mostAttempts = 10;

/** Says on an alert what helped before, or didn't. */
export const remedyPart = (on: {
  remedies: Pick<Remedies, "of" | "get" | "touch">;
  changes: readonly ChangeCommand[];
}): RemedyPart => ({
  async advise(vmId, alertNames, { scope, projectName }) {
    const names = alertNames.slice(0, mostNames);
    const all = await Promise.all(
      names.map(async (name) => {
        const seen = (await on.remedies.of(vmId, name)).filter(({ record: { project } }) =>
          seesUnder(scope, project.id, [project.name, projectName]),
        );
        return sumUp(pastOf(seen, name));
      }),
    );
    return all
      .flatMap((sums, n) =>
        sums.flatMap((sum) => {
          const command = on.changes.find(({ name }) => name === sum.command);
          if (!command) return [];
          const advice = adviceOn(sum, command);
          const of = names.length > 1 ? `${names[n] ?? ""}: ` : "";
          return [{ ...advice, text: `${of}${advice.text}` }];
        }),
      )
      .slice(0, mostAdvice);
  },

  async learned(requests, at, firingOn) {
    for (const id of requests.slice(-mostAttempts)) {
      const remedy = await on.remedies.get(id);
      if (!remedy?.judgment || remedy.judgment.judgedAt > at) continue;
      const { state, record } = remedy;
      // An alert that was over can fire again with the same beginning.
      const isFiring = () => firesStill(record, firingOn(record.vmId));
      if (state === "open" || (state === "judged" && isFiring())) await on.remedies.touch(id);
    }
  },
});
