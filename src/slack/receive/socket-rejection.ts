import { textAt } from "../web.ts";

/**
 * Rejections that @slack/socket-mode can leave unhandled when Slack disconnects. None are expected; main logs them
 * instead of ending the process.
 */
export function isKnownSocketRejection(error: unknown): boolean {
  if (error === undefined) return true; // its start(), when disconnect() comes first
  if (textAt(error, "code").startsWith("slack_socket_mode_")) return true;
  return /@slack[/\\]socket-mode/.test(textAt(error, "stack"));
}
