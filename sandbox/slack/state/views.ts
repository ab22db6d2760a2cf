import { randomBytes } from "node:crypto";
import { complaintsAbout } from "../blocks/check.ts";
import { type Current, stateOf } from "../blocks/input-state.ts";
import { withIds } from "../blocks/walk.ts";
import { copyOf, type Fields, isFields, listOf, textOf, wordsOf } from "../fields.ts";
import { picturesOf } from "./files.ts";
import type { View, Trigger } from "./records.ts";
import type { Workspace } from "./workspace.ts";

export const mostPushed = 3;
const maxBytes = 250_000;

const properties = new Set([
  "type",
  "title",
  "submit",
  "close",
  "blocks",
  "private_metadata",
  "callback_id",
  "external_id",
  "clear_on_close",
  "notify_on_close",
  "submit_disabled",
]);

/** What Slack would refuse about a view; empty when fine. https://docs.slack.dev/reference/views */
export function complaintsAboutView(
  workspace: Workspace,
  view: Fields,
  type: "modal" | "home",
): string[] {
  const complaints: string[] = [];
  const say = (words: string, at: string) => complaints.push(`${words} [json-pointer:${at}]`);
  if (view["type"] !== type) say(`must be a valid enum value: ${type}`, "/view/type");
  if (view["blocks"] === undefined) say("missing required field: blocks", "/view");
  else
    complaints.push(
      ...complaintsAbout(view["blocks"], type, "/view/blocks", picturesOf(workspace)),
    );
  for (const key of Object.keys(view))
    if (!properties.has(key)) say(`invalid additional property: ${key}`, "/view");
  if (type === "modal") {
    if (view["title"] === undefined) say("missing required field: title", "/view");
    for (const key of ["title", "submit", "close"]) {
      const text = view[key];
      if (text === undefined || text === null) continue;
      if (!isFields(text) || text["type"] !== "plain_text")
        say("must be a plain_text object", `/view/${key}`);
      else if (wordsOf(text).length === 0)
        say("must be more than 0 characters", `/view/${key}/text`);
      else if (wordsOf(text).length > 24)
        say("must be less than 25 characters", `/view/${key}/text`);
    }
    const hasInput = listOf(view["blocks"]).some((block) => block["type"] === "input");
    if (hasInput && !view["submit"]) say("missing required field: submit", "/view");
  }
  for (const [key, most] of [
    ["private_metadata", 3000],
    ["callback_id", 255],
    ["external_id", 255],
  ] as const) {
    if (textOf(view[key]).length > most)
      say(`must be less than ${most + 1} characters`, `/view/${key}`);
  }
  return complaints;
}

export function isTooLarge(view: Fields): boolean {
  return Buffer.byteLength(JSON.stringify(view)) > maxBytes;
}

const textObject = (value: unknown) => (isFields(value) ? copyOf(value) : null);

/** A view from its definition. `before`: the version it replaces, whose inputs keep what the person entered. */
export function makeView(
  workspace: Workspace,
  definition: Fields,
  userId: string,
  before?: View,
  under?: View,
): View {
  const blocks = withIds(listOf(definition["blocks"]));
  const id = before?.id ?? workspace.newId("V");
  return {
    id,
    type: definition["type"] === "home" ? "home" : "modal",
    userId,
    hash: `${Math.floor(workspace.now() / 1000)}.${randomBytes(4).toString("hex")}`,
    callbackId: textOf(definition["callback_id"]),
    title: textObject(definition["title"]),
    submit: textObject(definition["submit"]),
    close: textObject(definition["close"]),
    blocks,
    state: stateOf(blocks, before?.state, currentOf(workspace, userId)),
    privateMetadata: textOf(definition["private_metadata"]),
    externalId: textOf(definition["external_id"]),
    rootViewId: before?.rootViewId ?? under?.rootViewId ?? id,
    previousViewId: before ? before.previousViewId : (under?.id ?? null),
    clearOnClose: definition["clear_on_close"] === true,
    notifyOnClose: definition["notify_on_close"] === true,
    errors: {},
  };
}

function currentOf(workspace: Workspace, userId: string): Current | undefined {
  const channel = workspace.channels.get(workspace.viewing.get(userId) ?? "");
  const kinds = { public: "public", private: "private", direct: "im", group: "mpim" } as const;
  return channel && { id: channel.id, kind: kinds[channel.kind] };
}

export function modalsOf(workspace: Workspace, userId: string): View[] {
  const known = workspace.modals.get(userId);
  if (known) return known;
  const fresh: View[] = [];
  workspace.modals.set(userId, fresh);
  return fresh;
}

export function topModal(workspace: Workspace, userId: string): View | undefined {
  return workspace.modals.get(userId)?.at(-1);
}

/** Every view anybody has open, Home tabs included. */
export function allViews(workspace: Workspace): View[] {
  return [...[...workspace.modals.values()].flat(), ...workspace.homes.values()];
}

/** Puts a new version in the place of the old one. */
export function replaceView(workspace: Workspace, old: View, fresh: View): void {
  if (old.type === "home") workspace.homes.set(old.userId, fresh);
  else {
    const stack = modalsOf(workspace, old.userId);
    const index = stack.indexOf(old);
    if (index >= 0) stack[index] = fresh;
  }
  workspace.changed();
}

/** A view as the Web API and payloads show it. */
export function viewObject(workspace: Workspace, view: View): Fields {
  return copyOf({
    id: view.id,
    team_id: workspace.team.id,
    type: view.type,
    blocks: view.blocks,
    private_metadata: view.privateMetadata,
    callback_id: view.callbackId,
    state: { values: view.state },
    hash: view.hash,
    title: view.title ?? { type: "plain_text", text: "View Title", emoji: true },
    clear_on_close: view.clearOnClose,
    notify_on_close: view.notifyOnClose,
    close: view.close,
    submit: view.submit,
    previous_view_id: view.previousViewId,
    root_view_id: view.rootViewId,
    app_id: workspace.app.appId,
    external_id: view.externalId,
    app_installed_team_id: workspace.team.id,
    bot_id: workspace.app.botId,
  });
}

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
  if (workspace.now() - trigger.issuedAt > workspace.app.triggerLifeMs) return "expired_trigger_id";
  trigger.used = true;
  return trigger;
}
