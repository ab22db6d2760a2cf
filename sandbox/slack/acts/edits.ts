import type { Outcome } from "../actions.ts";
import type { Deliveries } from "../deliver/deliveries.ts";
import { addChannel, channelOf } from "../state/channels.ts";
import { deleteMessage, findMessage } from "../state/messages.ts";
import { addGroup, addPerson, groupObject, personOf } from "../state/people.ts";
import type { Role } from "../state/records.ts";
import type { Workspace } from "../state/workspace.ts";
import { sendEvent } from "./act.ts";

/** What administrators, or fate, do to a workspace. Names or ids everywhere. */
export interface WorkspaceEdits {
  addPerson(spec: Parameters<typeof addPerson>[1]): void;
  addChannel(spec: Parameters<typeof addChannel>[1]): void;
  addGroup(id: string, handle: string, members: readonly string[]): void;
  /** Tells the app, when it is subscribed to such changes; resolves with what came of that. */
  setGroupMembers(group: string, members: readonly string[]): Promise<Outcome | undefined>;
  /** A disabled group isn't listed any more. */
  disableGroup(group: string): Promise<Outcome | undefined>;
  deactivate(person: string): void;
  reactivate(person: string): void;
  setRole(person: string, role: Role): void;
  rename(person: string, name: string): void;
  archive(channel: string): void;
  unarchive(channel: string): void;
  join(person: string, channel: string): void;
  leave(person: string, channel: string): void;
  /** Takes the app's bot out of a channel. */
  removeBot(channel: string): void;
  deleteMessage(channel: string, ts: string): void;
  /** Older messages can't be edited any more; undefined for no such rule. */
  setEditWindow(ms: number | undefined): void;
  /** Further messages are refused, until a minute is over; undefined for no such rule. */
  setMessageLimit(perMinute: number | undefined): void;
  /** Every message with blocks is refused with this error; undefined for no such rule. */
  refuseBlocks(error: string | undefined): void;
  /** The channel takes no replies. */
  setNonThreadable(channel: string, isNonThreadable?: boolean): void;
  /** The thread of a message takes no replies. */
  lockThread(channel: string, ts: string): void;
  /** Another app, or an attacker, changes a message behind the app's back. */
  tamper(
    channel: string,
    ts: string,
    change: { text?: string; blocks?: Record<string, unknown>[] },
  ): void;
}

export function workspaceEdits(workspace: Workspace, deliveries: Deliveries): WorkspaceEdits {
  const change = (edit: () => void) => {
    edit();
    workspace.changed();
  };
  const group = (idOrHandle: string) => {
    const handle = idOrHandle.replace(/^@/, "");
    const found =
      workspace.groups.get(handle) ??
      [...workspace.groups.values()].find((one) => one.handle === handle);
    if (!found) throw new Error(`There is no user group ${idOrHandle}`);
    return found;
  };
  const groupUpdated = (id: string) => {
    const subteam = groupObject(workspace, group(id), { users: true, count: true });
    return sendEvent({ workspace, deliveries }, "subteam_updated", {
      type: "subteam_updated",
      subteam,
      event_ts: workspace.newTs(),
    });
  };
  const message = (channel: string, ts: string) => {
    const found = findMessage(workspace, channelOf(workspace, channel).id, ts);
    if (!found) throw new Error(`There is no message ${ts} in ${channel}`);
    return found;
  };
  return {
    addPerson: (spec) => void addPerson(workspace, spec),
    addChannel: (spec) => void addChannel(workspace, spec),
    addGroup: (id, handle, members) =>
      addGroup(
        workspace,
        id,
        handle,
        handle,
        members.map((one) => personOf(workspace, one).id),
      ),
    setGroupMembers: async (name, members) => {
      const edited = group(name);
      const before = edited.userIds;
      const previous = edited.updatedAt;
      edited.userIds = members.map((one) => personOf(workspace, one).id);
      edited.updatedAt = workspace.now();
      workspace.changed();
      const added = edited.userIds.filter((id) => !before.includes(id));
      const removed = before.filter((id) => !edited.userIds.includes(id));
      const event = {
        type: "subteam_members_changed",
        subteam_id: edited.id,
        team_id: workspace.team.id,
        date_previous_update: Math.floor(previous / 1000),
        date_update: Math.floor(edited.updatedAt / 1000),
        added_users: added,
        added_users_count: String(added.length),
        removed_users: removed,
        removed_users_count: String(removed.length),
        event_ts: workspace.newTs(),
      };
      const told = await sendEvent({ workspace, deliveries }, "subteam_members_changed", event);
      return (await groupUpdated(edited.id)) ?? told;
    },
    disableGroup: (name) => {
      change(() => void (group(name).active = false));
      return groupUpdated(name);
    },
    deactivate: (person) => change(() => void (personOf(workspace, person).active = false)),
    reactivate: (person) => change(() => void (personOf(workspace, person).active = true)),
    setRole: (person, role) => change(() => void (personOf(workspace, person).role = role)),
    rename: (person, name) => change(() => void (personOf(workspace, person).name = name)),
    archive: (channel) => change(() => void (channelOf(workspace, channel).archived = true)),
    unarchive: (channel) => change(() => void (channelOf(workspace, channel).archived = false)),
    join: (person, channel) =>
      change(
        () => void channelOf(workspace, channel).memberIds.add(personOf(workspace, person).id),
      ),
    leave: (person, channel) =>
      change(
        () => void channelOf(workspace, channel).memberIds.delete(personOf(workspace, person).id),
      ),
    removeBot: (channel) =>
      change(() => void channelOf(workspace, channel).memberIds.delete(workspace.app.botUserId)),
    deleteMessage: (channel, ts) => deleteMessage(workspace, message(channel, ts)),
    setEditWindow: (ms) => change(() => void (workspace.rules.editWindowMs = ms)),
    setMessageLimit: (perMinute) =>
      change(() => void (workspace.rules.messagesPerMinute = perMinute)),
    refuseBlocks: (error) => change(() => void (workspace.rules.refusesBlocks = error)),
    setNonThreadable: (channel, isNonThreadable = true) =>
      change(() => void (channelOf(workspace, channel).isNonThreadable = isNonThreadable)),
    lockThread: (channel, ts) => change(() => void (message(channel, ts).isLocked = true)),
    tamper: (channel, ts, { text, blocks }) =>
      change(() => {
        const edited = message(channel, ts);
        if (text !== undefined) edited.text = text;
        if (blocks !== undefined)
          edited.blocks = blocks.map((block) => ({ ...block, type: String(block["type"]) }));
      }),
  };
}
