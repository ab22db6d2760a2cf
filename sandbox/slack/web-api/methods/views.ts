import type { Fields } from "../../fields.ts";
import type { Trigger, View } from "../../state/records.ts";
import {
  exchangeTrigger,
  allViews,
  complaintsAboutView,
  isTooLarge,
  makeView,
  modalsOf,
  mostPushed,
  replaceView,
  viewObject,
} from "../../state/views.ts";
import { type Call, type Method, refuseArguments, Refused } from "./method.ts";

const unscoped = { scopes: [], token: "bot" } as const;

export const views: Record<string, Method> = {
  "views.open": {
    ...unscoped,
    run: (call) => {
      const definition = definitionOf(call, "modal");
      const trigger = triggerOf(call);
      const view = makeView(call.workspace, definition, trigger.userId);
      // One app has one stack of modals open for a person: a new one takes the place of the old.
      call.workspace.modals.set(trigger.userId, [view]);
      return shown(call, view);
    },
  },

  "views.push": {
    ...unscoped,
    run: (call) => {
      const definition = definitionOf(call, "modal");
      const trigger = triggerOf(call);
      const stack = modalsOf(call.workspace, trigger.userId);
      const under = stack.at(-1);
      // Only something done in the open modal lets another be pushed on it.
      if (!under || !stack.some(({ id }) => id === trigger.fromViewId))
        throw new Refused("invalid_trigger_id");
      if (stack.length >= mostPushed) throw new Refused("push_limit_reached");
      const view = makeView(call.workspace, definition, trigger.userId, undefined, under);
      stack.push(view);
      return shown(call, view);
    },
  },

  "views.update": {
    ...unscoped,
    run: (call) => {
      const old = found(call);
      const definition = definitionOf(call, old.type, old);
      if (call.has("hash") && call.text("hash") !== old.hash) throw new Refused("hash_conflict");
      const view = makeView(call.workspace, definition, old.userId, old);
      replaceView(call.workspace, old, view);
      return shown(call, view);
    },
  },

  "views.publish": {
    ...unscoped,
    run: (call) => {
      call.required("user_id", "view");
      if (!call.workspace.app.homeTab) throw new Refused("not_enabled");
      const person = call.workspace.people.get(call.text("user_id"));
      if (!person) throw new Refused("user_not_found");
      const old = call.workspace.homes.get(person.id);
      const definition = definitionOf(call, "home", old);
      if (call.has("hash") && call.text("hash") !== old?.hash) throw new Refused("hash_conflict");
      const view = makeView(call.workspace, definition, person.id, old);
      call.workspace.homes.set(person.id, view);
      return shown(call, view);
    },
  },
};

function definitionOf(call: Call, type: "modal" | "home", old?: View): Fields {
  call.required("view");
  const definition = call.object("view", "invalid_arguments");
  if (!definition) throw new Refused("invalid_arguments");
  if (isTooLarge(definition)) throw new Refused("view_too_large");
  const complaints = complaintsAboutView(call.workspace, definition, type);
  if (complaints.length > 0) refuseArguments("invalid_arguments", complaints);
  const external = definition["external_id"];
  const taken =
    typeof external === "string" &&
    external !== "" &&
    allViews(call.workspace).some((view) => view.externalId === external && view.id !== old?.id);
  if (taken) throw new Refused("duplicate_external_id");
  return definition;
}

function triggerOf(call: Call): Trigger {
  // An interactivity pointer may stand in for the trigger id.
  const id = call.text("trigger_id") || call.text("interactivity_pointer");
  if (id === "") call.required("trigger_id");
  const trigger = exchangeTrigger(call.workspace, id);
  if (typeof trigger === "string") throw new Refused(trigger);
  return trigger;
}

function found(call: Call): View {
  const open = allViews(call.workspace);
  if (!call.has("view_id") && !call.has("external_id")) call.required("view_id");
  const view = call.has("view_id")
    ? open.find(({ id }) => id === call.text("view_id"))
    : open.find(({ externalId }) => externalId === call.text("external_id"));
  if (!view) throw new Refused("not_found");
  return view;
}

function shown(call: Call, view: View): Fields {
  call.workspace.changed();
  return { view: viewObject(call.workspace, view) };
}
