import type { Workspace } from "./workspace.ts";

/** Shows a person a line of Slack's own. The newest 50 are kept. */
export function showToast(
  workspace: Workspace,
  userId: string,
  toast: { text: string; error?: string; channelId?: string },
): void {
  const list = workspace.toasts.get(userId) ?? [];
  workspace.toasts.set(userId, [
    ...list.slice(-49),
    { ...toast, id: workspace.newTs(), at: workspace.now() },
  ]);
  workspace.changed();
}
