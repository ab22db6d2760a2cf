import { pendingApprovals, voting } from "./approving.ts";
import { type Expectation, fresh, judged, onStage, type Outcome, type Row } from "./row.ts";
import type { Stage } from "./stage.ts";

type Pending = Awaited<ReturnType<typeof pendingApprovals>>[number];

export const approve = (
  stage: Stage,
  who: string,
  pending: Pending | undefined,
  what = "Approve",
) =>
  stage.slack.act(who, "presses", what, {
    in: pending?.ts ?? "",
    channel: pending?.channel ?? "ops",
  });

export const votesOf = (fields: Record<string, string> | undefined) =>
  Object.keys(fields ?? {}).filter((field) => field.startsWith("vote:")).length;

/** One stop that waits for approval, then what happens to it, then how it must stand. */
export function onApproval(
  id: string,
  what: string,
  story: (stage: Stage, pending: Pending, vm: string) => Promise<Expectation[]>,
  more: { receive?: "http"; policy?: string } = {},
): Row {
  return {
    id,
    what,
    run: ({ seed }): Promise<Outcome> =>
      onStage(
        { seed, policy: more.policy ?? voting, ...(more.receive ? { receive: more.receive } : {}) },
        async (stage) => {
          const vm = await fresh(stage)("vm stop");
          await stage.ask("vm stop", vm);
          const [pending] = await pendingApprovals(stage, 1);
          if (!pending) throw new Error("nothing waits");
          const expectations = await story(stage, pending, vm);
          return judged(await stage.check(), expectations);
        },
      ),
  };
}
