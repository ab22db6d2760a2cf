import { randomBytes } from "node:crypto";
import type { Trigger } from "./records.ts";
import type { Workspace } from "./workspace.ts";

const triggerLifeMs = 3000;

export function issueTrigger(workspace: Workspace, userId: string, fromViewId?: string): string {
  const id = `${workspace.now()}.${workspace.triggers.size}.${randomBytes(16).toString("hex")}`;
  workspace.triggers.set(id, {
    id,
    userId,
    issuedAt: workspace.now(),
    used: false,
    ...(fromViewId === undefined ? {} : { fromViewId }),
  });
  return id;
}

/** Uses a trigger up. Errors are those of https://docs.slack.dev/reference/methods/views.open/ */
export function exchangeTrigger(
  workspace: Workspace,
  id: string,
): Trigger | "invalid_trigger_id" | "exchanged_trigger_id" | "expired_trigger_id" {
  const trigger = workspace.triggers.get(id);
  if (!trigger) return "invalid_trigger_id";
  if (trigger.used) return "exchanged_trigger_id";
  if (workspace.now() - trigger.issuedAt > triggerLifeMs) return "expired_trigger_id";
  trigger.used = true;
  return trigger;
}
