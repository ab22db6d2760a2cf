import type { Journalled } from "../check/count-effects.ts";
import type { Stage } from "../stage/stage.ts";
import { looking } from "../stage/looking.ts";

/** Policy: stops need somebody else. */
export const voting = `approvals: [{ operations: ["vm.stop"], required: 1, expires: 60s }]`;

/** A draft that stands in Slack with its buttons. */
export type Pending = Journalled & { ts: string; channel: string };

/** Resolves with the drafts that stand in Slack, once there are so many. */
export async function pendingApprovals(stage: Stage, count: number): Promise<Pending[]> {
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

/** Presses a button of the card; rejects when it is not there. */
export const press = (
  stage: Stage,
  who: string,
  pending: Pending | undefined,
  button: "Approve" | "Deny" = "Approve",
) =>
  stage.slack.act(who, "presses", button, {
    in: pending?.ts ?? "",
    channel: pending?.channel ?? "ops",
  });

/**
 * Presses a button again until the app took a press, as people do where Slack says that it couldn't
 * deliver one: a socket whose client's clock stepped takes the pong for late, and is opened anew.
 */
export async function pressUntilTaken(
  stage: Stage,
  who: string,
  pending: Pending | undefined,
): Promise<void> {
  if ((await press(stage, who, pending)).acked) return;
  await looking(
    async () => {
      const { acked } = await press(stage, who, pending).catch(() => cardWithoutButton);
      return acked || undefined;
    },
    15_000,
    async () => "a press should be taken",
  );
}

/** Shows that an earlier press was taken, although nobody heard so. */
const cardWithoutButton = { acked: true };

/** Presses a button that may be gone, or on a card that this person may not see. Whether there was one to press. */
export const tryPress = (...press_: Parameters<typeof press>): Promise<boolean> =>
  press(...press_).then(
    () => true,
    () => false,
  );

export const votesOf = (fields: Record<string, string> | undefined): number =>
  Object.keys(fields ?? {}).filter((field) => field.startsWith("vote:")).length;
