import type { Journalled } from "./count-effects.ts";
import { looking } from "./looking.ts";
import type { Stage } from "./stage.ts";

/** Policy: stops need somebody else. */
export const voting = `approvals: [{ operations: ["vm.stop"], required: 1, expires: 60s }]`;

/** Drafts that stand in Slack with their buttons, once there are so many. */
export async function pendingApprovals(
  stage: Stage,
  count: number,
): Promise<(Journalled & { ts: string; channel: string })[]> {
  return looking(
    async () => {
      const drafts = (await stage.journal())
        .filter(({ state, fields }) => state === "draft" && fields["card"] !== undefined)
        .map((request) => {
          const [channel = "", ts = ""] = (request.fields["card"] ?? "").split(" ");
          return { ...request, channel, ts };
        });
      return drafts.length >= count ? drafts : undefined;
    },
    // Slack takes them one by one
    15_000 + count * 100,
    async () => `${count} requests should wait for approval`,
  );
}
