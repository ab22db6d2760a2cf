import { type Fields, fieldsOf, textOf } from "../fields.ts";
import type { SeenState } from "../seen.ts";
import { messageObject } from "../state/messages.ts";
import type { Channel, Message, Person, View } from "../state/records.ts";
import { issueResponseUrl } from "../state/response-urls.ts";
import { issueTrigger, viewObject } from "../state/views.ts";
import type { Workspace } from "../state/workspace.ts";

/** What Slack puts into each kind of delivery. https://docs.slack.dev/reference/interaction-payloads */

const verificationToken = "sandbox-verification-token";

function envelope(workspace: Workspace): Fields {
  return {
    token: verificationToken,
    team: {
      id: workspace.team.id,
      domain: workspace.team.domain,
      ...(enterpriseOf(workspace) && { enterprise_id: enterpriseOf(workspace) }),
    },
    enterprise: enterpriseOf(workspace) ? { id: enterpriseOf(workspace) } : null,
    is_enterprise_install: false,
    api_app_id: workspace.app.appId,
  };
}

const enterpriseOf = ({ team }: Workspace) => team.enterpriseId ?? null;

/** On Enterprise Grid `team_id` is the person's first workspace, whichever one they pressed in. */
function user(person: Person): Fields {
  return { id: person.id, username: person.name, name: person.name, team_id: person.teamId };
}

export function commandPayload(
  workspace: Workspace,
  person: Person,
  channel: Channel,
  command: string,
  text: string,
): Fields {
  return {
    token: verificationToken,
    team_id: person.teamId,
    team_domain: workspace.team.domain,
    ...(person.enterprise ? { enterprise_id: person.enterprise.id } : {}),
    channel_id: channel.id,
    channel_name: {
      public: channel.name,
      private: "privategroup",
      direct: "directmessage",
      group: channel.name,
    }[channel.kind],
    user_id: person.id,
    user_name: person.name,
    command,
    text,
    api_app_id: workspace.app.appId,
    is_enterprise_install: "false",
    response_url: issueResponseUrl(workspace, { userId: person.id, channelId: channel.id }),
    trigger_id: issueTrigger(workspace, person.id),
  };
}

/** Where an interactive element was used. */
export type Place =
  | { kind: "message"; message: Message; ephemeral: boolean; channel: Channel }
  | { kind: "view"; view: View };

export function blockActionsPayload(
  workspace: Workspace,
  person: Person,
  place: Place,
  action: Fields,
  state: SeenState,
): Fields {
  const shared = {
    type: "block_actions",
    user: user(person),
    ...envelope(workspace),
    trigger_id: issueTrigger(
      workspace,
      person.id,
      place.kind === "view" ? place.view.id : undefined,
    ),
    actions: [{ ...action, action_ts: workspace.newTs() }],
  };
  if (place.kind === "view") {
    return {
      ...shared,
      container: { type: "view", view_id: place.view.id },
      view: viewObject(workspace, place.view),
    };
  }
  const { message, channel, ephemeral } = place;
  return {
    ...shared,
    ...inChannel(channel),
    container: {
      type: "message",
      message_ts: message.ts,
      channel_id: channel.id,
      is_ephemeral: ephemeral,
      ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
    },
    // Slack doesn't send the message itself when it is an ephemeral one.
    ...(ephemeral ? {} : { message: messageObject(workspace, message) }),
    state: { values: state },
    response_url: issueResponseUrl(workspace, {
      userId: person.id,
      channelId: channel.id,
      source: { ts: message.ts, ephemeral },
      ...(message.threadTs === undefined ? {} : { threadTs: message.threadTs }),
    }),
  };
}

function inChannel(channel: Channel): Fields {
  return {
    channel: { id: channel.id, name: channel.kind === "direct" ? "directmessage" : channel.name },
  };
}

export function suggestionPayload(
  workspace: Workspace,
  person: Person,
  place: Place,
  blockId: string,
  actionId: string,
  value: string,
): Fields {
  const shared = {
    type: "block_suggestion",
    user: user(person),
    ...envelope(workspace),
    action_id: actionId,
    block_id: blockId,
    value,
  };
  if (place.kind === "view") {
    return {
      ...shared,
      container: { type: "view", view_id: place.view.id },
      view: viewObject(workspace, place.view),
    };
  }
  const { message, channel, ephemeral } = place;
  const container = {
    type: "message",
    message_ts: message.ts,
    channel_id: channel.id,
    is_ephemeral: ephemeral,
  };
  return {
    ...shared,
    ...inChannel(channel),
    container,
    ...(ephemeral ? {} : { message: messageObject(workspace, message) }),
  };
}

export function submissionPayload(workspace: Workspace, person: Person, view: View): Fields {
  return {
    type: "view_submission",
    user: user(person),
    ...envelope(workspace),
    trigger_id: issueTrigger(workspace, person.id, view.id),
    view: viewObject(workspace, view),
    response_urls: responseUrls(workspace, person, view),
  };
}

/** Only selects that ask for it give a response URL, for the channel that was chosen. */
function responseUrls(workspace: Workspace, person: Person, view: View): Fields[] {
  return view.blocks.flatMap((block) => {
    const element = fieldsOf(block["element"]);
    if (element["response_url_enabled"] !== true) return [];
    const [blockId, actionId] = [textOf(block.block_id), textOf(element["action_id"])];
    const value = view.state[blockId]?.[actionId];
    const channelId = value?.selected_conversation ?? value?.selected_channel;
    if (!channelId) return [];
    const response_url = issueResponseUrl(workspace, { userId: person.id, channelId });
    return [{ block_id: blockId, action_id: actionId, channel_id: channelId, response_url }];
  });
}

export function closedPayload(
  workspace: Workspace,
  person: Person,
  view: View,
  isCleared: boolean,
): Fields {
  return {
    type: "view_closed",
    user: user(person),
    ...envelope(workspace),
    view: viewObject(workspace, view),
    is_cleared: isCleared,
  };
}

export function shortcutPayload(workspace: Workspace, person: Person, callbackId: string): Fields {
  return {
    type: "shortcut",
    ...envelope(workspace),
    user: user(person),
    action_ts: workspace.newTs(),
    callback_id: callbackId,
    trigger_id: issueTrigger(workspace, person.id),
  };
}

export function messageShortcutPayload(
  workspace: Workspace,
  person: Person,
  callbackId: string,
  channel: Channel,
  message: Message,
): Fields {
  return {
    ...shortcutPayload(workspace, person, callbackId),
    type: "message_action",
    ...inChannel(channel),
    message_ts: message.ts,
    message: messageObject(workspace, message),
    response_url: issueResponseUrl(workspace, { userId: person.id, channelId: channel.id }),
  };
}

export function eventPayload(workspace: Workspace, event: Fields, channel?: Channel): Fields {
  const { team, app } = workspace;
  return {
    token: verificationToken,
    team_id: team.id,
    context_team_id: team.id,
    context_enterprise_id: enterpriseOf(workspace),
    api_app_id: app.appId,
    event,
    type: "event_callback",
    event_id: workspace.newId("Ev"),
    event_time: Math.floor(workspace.now() / 1000),
    authorizations: [
      {
        enterprise_id: enterpriseOf(workspace),
        team_id: team.id,
        user_id: app.botUserId,
        is_bot: true,
        is_enterprise_install: false,
      },
    ],
    is_ext_shared_channel: channel?.shared ?? false,
    event_context: `4-${workspace.newId("E")}`,
  };
}
