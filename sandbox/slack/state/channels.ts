import type { Fields } from "../fields.ts";
import { personOf } from "./people.ts";
import type { Channel, Person } from "./records.ts";
import type { Workspace } from "./workspace.ts";

export function addChannel(
  workspace: Workspace,
  spec: {
    id: string;
    name: string;
    kind?: Channel["kind"];
    members?: readonly string[];
    shared?: boolean;
    topic?: string;
  },
): Channel {
  if (!/^[CGD][A-Z0-9]+$/.test(spec.id)) throw new Error(`${spec.id} isn't a Slack channel id`);
  const channel: Channel = {
    id: spec.id,
    name: spec.name,
    kind: spec.kind ?? "public",
    memberIds: new Set((spec.members ?? []).map((member) => personOf(workspace, member).id)),
    archived: false,
    createdAt: workspace.now(),
    shared: spec.shared ?? false,
    topic: spec.topic ?? "",
  };
  workspace.channels.set(channel.id, channel);
  workspace.changed();
  return channel;
}

/** By id or name, with or without #. Throws when there is none. */
export function channelOf(workspace: Workspace, idOrName: string): Channel {
  const name = idOrName.replace(/^#/, "");
  const found =
    workspace.channels.get(name) ??
    [...workspace.channels.values()].find((channel) => channel.name === name);
  if (!found) {
    const known = [...workspace.channels.values()]
      .map((channel) => channel.name || channel.id)
      .join(", ");
    throw new Error(`There is no channel ${idOrName}. There are ${known}.`);
  }
  return found;
}

/** The direct message between two, made when first needed. */
export function directChannel(workspace: Workspace, one: string, other: string): Channel {
  for (const channel of workspace.channels.values()) {
    if (channel.kind === "direct" && channel.memberIds.has(one) && channel.memberIds.has(other))
      return channel;
  }
  return addChannel(workspace, {
    id: workspace.newId("D"),
    name: "",
    kind: "direct",
    members: [one, other],
  });
}

/** Public channels are open to every full member; guests and strangers see only what they are in. */
export function maySee(channel: Channel, person: Person): boolean {
  if (channel.memberIds.has(person.id)) return true;
  return channel.kind === "public" && person.role !== "guest" && person.role !== "stranger";
}

/** A direct message with the app, whose settings let nobody write to it. */
export function isReadOnly({ app }: Workspace, channel: Channel): boolean {
  return (
    app.messagesTabReadOnly && channel.kind === "direct" && channel.memberIds.has(app.botUserId)
  );
}

export function channelObject(workspace: Workspace, channel: Channel, forUserId: string): Fields {
  const base = {
    id: channel.id,
    created: Math.floor(channel.createdAt / 1000),
    is_archived: channel.archived,
    is_channel: channel.kind === "public",
    is_group: channel.kind === "private",
    is_im: channel.kind === "direct",
    is_mpim: channel.kind === "group",
    is_private: channel.kind !== "public",
    is_org_shared: false,
    is_shared: channel.shared,
    is_ext_shared: channel.shared,
    context_team_id: workspace.team.id,
    updated: Math.floor(channel.createdAt),
  };
  if (channel.kind === "direct") {
    const other = [...channel.memberIds].find((id) => id !== forUserId) ?? forUserId;
    return {
      ...base,
      user: other,
      is_user_deleted: !(workspace.people.get(other)?.active ?? false),
    };
  }
  return {
    ...base,
    name: channel.name,
    name_normalized: channel.name,
    is_general: false,
    unlinked: 0,
    creator: "U0ADA",
    is_member: channel.memberIds.has(forUserId),
    topic: { value: channel.topic, creator: "", last_set: 0 },
    purpose: { value: "", creator: "", last_set: 0 },
    previous_names: [],
    num_members: channel.memberIds.size,
  };
}
