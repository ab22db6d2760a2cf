import type { App } from "@slack/bolt";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { demoGuide } from "../../../demo/guide.ts";
import type { Killable } from "../../../sandbox/killable.ts";
import { startPage } from "../../../sandbox/page/page.ts";
import { createDemoWeather } from "../../../demo/weather.ts";
import { startBoltWorld } from "../slack/small-bot.ts";

const words = (text: string) => ({ type: "plain_text" as const, text });
const mrkdwn = (text: string) => ({ type: "mrkdwn" as const, text });
const section = (text: string) => ({ type: "section" as const, text: mrkdwn(text) });
const input = (block_id: string, label: string, element: object, more = {}) => ({
  type: "input" as const,
  block_id,
  label: words(label),
  element,
  ...more,
});

const restoreView = (note?: string) => ({
  type: "modal" as const,
  callback_id: "restore",
  title: words("Restore db-1"),
  submit: words("Restore"),
  close: words("Keep as it is"),
  blocks: [
    ...(note === undefined ? [] : [section(note)]),
    input("name", "Type db-1 to confirm", { type: "plain_text_input", action_id: "typed" }),
    input("reason", "Reason", { type: "plain_text_input", action_id: "typed", multiline: true }),
    input(
      "snapshot",
      "Snapshot",
      { type: "external_select", action_id: "snapshot", min_query_length: 1 },
      { dispatch_action: true },
    ),
    input(
      "safety",
      "Way back",
      {
        type: "checkboxes",
        action_id: "safety",
        options: [{ text: words("Snapshot first"), value: "yes" }],
      },
      { optional: true },
    ),
  ],
});

/** Something to press and fill: what it was told is in `heard`. */
export function listenLikeABot(heard: string[]): (app: App) => void {
  return (app) => {
    app.command("/vm", async ({ command, ack, client, respond }) => {
      await ack();
      if (command.text === "list") await respond("*2 VMs*, only for you");
      else if (command.text === "restore db-1") {
        await client.apiCall("views.open", { trigger_id: command.trigger_id, view: restoreView() });
      } else {
        await client.apiCall("chat.postMessage", {
          channel: command.channel_id,
          text: "Restart web-1?",
          blocks: [
            section("Restart `web-1`?"),
            {
              type: "actions",
              elements: [
                {
                  type: "button",
                  text: words("Restart"),
                  action_id: "restart",
                  style: "danger",
                  confirm: {
                    title: words("Restart web-1?"),
                    text: words("It is down for a minute."),
                    confirm: words("Yes, restart"),
                    deny: words("Keep it running"),
                  },
                },
              ],
            },
          ],
        });
      }
    });
    app.action("restart", async ({ ack, body, client, respond }) => {
      await ack();
      heard.push(`${body.user.id} restarts`);
      if (body.type !== "block_actions" || body.message === undefined) return;
      await respond({ replace_original: true, text: "web-1 is restarting" });
      await client.apiCall("chat.postMessage", {
        channel: body.channel?.id,
        thread_ts: body.message["ts"],
        text: "web-1 runs again after 41 s",
      });
    });
    app.options("snapshot", async ({ ack, options }) => {
      const all = ["nightly", "weekly"].filter((name) => name.includes(options.value));
      await ack({ options: all.map((name) => ({ text: words(name), value: name })) });
    });
    app.action("snapshot", async ({ ack, body, client }) => {
      await ack();
      if (body.type === "block_actions")
        await client.apiCall("views.update", {
          view_id: body.view?.id,
          view: restoreView("That snapshot is 6 h old"),
        });
    });
    app.view("restore", async ({ ack, view }) => {
      const { name, reason, snapshot, safety } = view.state.values;
      const typed = name?.["typed"]?.value;
      if (typed !== "db-1")
        return ack({ response_action: "errors", errors: { name: "That isn't db-1." } });
      heard.push(
        `restore to ${snapshot?.["snapshot"]?.selected_option?.value} because ${reason?.["typed"]?.value}, ${safety?.["safety"]?.selected_options?.length ?? 0} way back`,
      );
      return ack();
    });
    app.event("app_home_opened", async ({ event, client }) => {
      await client.apiCall("views.publish", {
        user_id: event.user,
        view: { type: "home", blocks: [section(`Nothing waits for <@${event.user}>`)] },
      });
    });
    app.shortcut("show", async ({ ack, shortcut }) => {
      await ack();
      heard.push(`shortcut on "${"message" in shortcut ? shortcut.message.text : ""}"`);
    });
  };
}

/** Something to kill that is no process. */
function pretended(): Killable {
  let isUp = true;
  const set = (up: boolean) => {
    isUp = up;
    return Promise.resolve();
  };
  return {
    isUp: () => isUp,
    kill: () => set(false),
    start: () => set(true),
    close: () => set(false),
  };
}

/** The small bot in a sandbox Slack, with the page in front of it; `more`: a guide and weather too. */
export async function startPageWorld({ more = false } = {}) {
  const heard: string[] = [];
  const [world, compute] = await Promise.all([
    startBoltWorld("socket", listenLikeABot(heard)),
    startSandboxCompute({ transitionMs: 0 }),
  ]);
  const processes = { redis: pretended(), worker: pretended() };
  const page = await startPage({
    slack: world.slack,
    ...(more
      ? {
          guide: demoGuide,
          weather: createDemoWeather({
            slack: world.slack,
            compute,
            endorse: async () => undefined,
            ...processes,
            processes: [],
          }),
        }
      : {}),
  });
  world.slack.app.shortcuts = [
    { name: "Show the VMs named here", callbackId: "show", type: "message" },
  ];
  return {
    slack: world.slack,
    compute,
    heard,
    url: page.url,
    [Symbol.asyncDispose]: async () => {
      await page.close();
      await compute.close();
      await world[Symbol.asyncDispose]();
    },
  };
}
