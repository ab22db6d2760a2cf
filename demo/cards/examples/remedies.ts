import { restart } from "../../../src/commands/vm/restart.ts";
import {
  type StillFiring,
  renderCorrection,
  renderStillFiring,
} from "../../../src/features/remedies/render-remedy.ts";
import { type About, type Example, at } from "../example.ts";

const told = (
  { vm }: About,
  verdict: "failed" | "early" | "unknown",
  heardAt = at,
): StillFiring => ({
  names: ["HighCpu"],
  alerts: {
    vm,
    alerts: [
      {
        name: "HighCpu",
        state: "firing",
        since: at - 600_000,
        endedAt: undefined,
        heardAt,
        isLeftOut: false,
      },
    ],
    place: undefined,
    source: "prometheus",
    changedAt: at,
    links: [
      {
        label: "Runbook",
        action: "runbook-0",
        value: "",
        url: "https://runbooks.example/HighCpu",
      } as never,
    ],
  },
  requester: "U0OLIVIA",
  command: restart,
  judgment: { verdicts: { HighCpu: verdict as never }, changedAt: at - 300_000, judgedAt: at },
  isAgain: false,
  failedBefore: 1,
});

export const examples: readonly Example[] = [
  {
    name: "a change that didn't help",
    reader: "requester",
    make: (about) => renderStillFiring(told(about, "failed")),
    push: "🔥 HighCpu on db-1 still fires, 5 min after the restart. A restart didn't help; it didn't the last time either.",
  },
  {
    name: "a change after which the source is silent",
    reader: "requester",
    make: (about) => renderStillFiring(told(about, "unknown", at - 400_000)),
    push: "🔥 HighCpu on db-1 still fires, 5 min after the restart, as far as prometheus has told: it hasn't spoken since the restart.",
  },
  {
    name: "a correction: it had helped",
    reader: "requester",
    make: (about) => renderCorrection(told(about, "early")),
    push: "✅ HighCpu on db-1 had ended before the restart; prometheus told it only later.",
  },
];
