import { everyMessage } from "./editing.ts";
import type { Workspace } from "./workspace.ts";

/** The last messages of the workspace, what Slack told people, and the app's calls: for failures. */
export function describeWorkspace(
  workspace: Workspace,
  callCounts: Record<string, number>,
): string {
  const name = (channelId: string) => workspace.channels.get(channelId)?.name || channelId;
  const posted = everyMessage(workspace)
    .slice(-20)
    .map(({ channelId, text, userId }) => `  #${name(channelId)} ${userId}: ${text.slice(0, 200)}`);
  const whispered = workspace.ephemerals
    .slice(-10)
    .map(
      ({ channelId, toUserId, text }) =>
        `  #${name(channelId)} only to ${toUserId}: ${text.slice(0, 200)}`,
    );
  const told = [...workspace.toasts].flatMap(([userId, toasts]) =>
    toasts.slice(-5).map(({ text }) => `  ! ${userId}: ${text}`),
  );
  const calls = Object.entries(callCounts).map(([method, count]) => `${method} ${count}x`);
  return [
    `there is`,
    ...posted,
    ...whispered,
    ...told,
    `  calls: ${calls.join(", ") || "none"}`,
  ].join("\n");
}
