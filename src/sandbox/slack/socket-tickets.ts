import { randomBytes } from "node:crypto";
import type { Workspace } from "./workspace.ts";

const tickets = new WeakMap<Workspace, Set<string>>();

/** Lets one Socket Mode connection in. */
export function issueTicket(workspace: Workspace): string {
  const ticket = randomBytes(18).toString("base64url");
  const open = tickets.get(workspace) ?? new Set();
  tickets.set(workspace, open.add(ticket));
  return ticket;
}

/** True once per ticket. */
export function useTicket(workspace: Workspace, ticket: string): boolean {
  return tickets.get(workspace)?.delete(ticket) ?? false;
}
