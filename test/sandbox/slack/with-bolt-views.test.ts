import { describe, expect, it } from "vitest";
import { button, post, words, startBoltWorld, type Transport } from "./small-bot.ts";

describe.each<Transport>(["http", "socket"])("a Bolt app over %s", (transport) => {
  it("opens a modal, refuses a field, pushes, and hears it closed", async () => {
    const closed: unknown[] = [];
    await using here = await startBoltWorld(transport, (app) => {
      app.shortcut("restart-vm", async ({ ack, shortcut, client }) => {
        await ack();
        await client.views.open({
          trigger_id: shortcut.trigger_id,
          view: {
            type: "modal",
            callback_id: "restart",
            private_metadata: "secret",
            title: words("Restart"),
            submit: words("Go on"),
            blocks: [
              {
                type: "input",
                block_id: "vm",
                label: words("VM"),
                element: { type: "external_select", action_id: "pick", min_query_length: 1 },
              },
              {
                type: "input",
                block_id: "why",
                label: words("Reason"),
                element: { type: "plain_text_input", action_id: "text", min_length: 3 },
              },
            ],
          },
        });
      });
      app.options("pick", ({ ack, options }) =>
        ack({ options: [{ text: words(options.value), value: `id-${options.value}` }] }),
      );
      app.view("restart", async ({ ack, view }) => {
        const { values } = view.state;
        if (values["why"]?.["text"]?.value === "because")
          return ack({ response_action: "errors", errors: { why: "Say more" } });
        const chosen = values["vm"]?.["pick"]?.selected_option?.value;
        return ack({
          response_action: "push",
          view: {
            type: "modal",
            notify_on_close: true,
            title: words(`Sure? ${view.private_metadata}`),
            blocks: [{ type: "section", text: words(String(chosen)) }],
          },
        });
      });
      app.view({ type: "view_closed", callback_id: "" }, async ({ ack, body }) => {
        await ack();
        closed.push(body);
      });
    });
    await here.olivia.picksShortcut("Restart a VM…");
    await here.olivia.until(({ modals }) => modals.length === 1);
    expect(await here.olivia.submits({ VM: "web" })).toMatchObject({
      acked: false,
      errors: { why: expect.any(String) },
    });
    expect(await here.olivia.submits({ VM: "web", Reason: "because" })).toMatchObject({
      acked: true,
      errors: { why: "Say more" },
    });
    expect(await here.olivia.submits({ Reason: "because it hangs" })).toMatchObject({
      acked: true,
    });
    expect(here.olivia.sees().modals).toMatchObject([
      { title: "Restart" },
      { title: "Sure? secret", blocks: [{ text: { text: "id-web" } }] },
    ]);
    await here.olivia.closes();
    expect(here.olivia.sees().modals).toHaveLength(1);
    await here.slack.until(() => closed.length === 1);
    expect(closed).toMatchObject([{ type: "view_closed", is_cleared: false }]);
  });

  it("publishes the Home tab, and hears its buttons", async () => {
    await using here = await startBoltWorld(transport, (app) => {
      app.event("app_home_opened", async ({ event, client }) => {
        await client.views.publish({
          user_id: event.user,
          view: {
            type: "home",
            blocks: [{ type: "actions", elements: [button("Refresh", "refresh")] }],
          },
        });
      });
      app.action("refresh", async ({ ack, body, client }) => {
        await ack();
        await client.views.publish({
          user_id: body.user.id,
          view: { type: "home", blocks: [{ type: "header", text: words("fresh") }] },
        });
      });
    });
    await here.olivia.opensHome();
    await here.olivia.until(({ home }) => home !== undefined);
    await here.olivia.presses("Refresh", { in: "home" });
    await here.olivia.until(({ home }) => home?.blocks[0]?.type === "header");
    expect(here.amir.sees().home).toBeUndefined();
  });

  it("hears message shortcuts and choices in messages", async () => {
    const heard: unknown[] = [];
    await using here = await startBoltWorld(transport, (app) => {
      app.shortcut("show-vms", async ({ ack, body, client }) => {
        await ack();
        if (body.type !== "message_action") return;
        await post(client, {
          channel: body.channel.id,
          text: `about: ${body.message.text}`,
          blocks: [
            {
              type: "section",
              text: words("pick"),
              accessory: {
                type: "static_select",
                action_id: "vm",
                options: ["a", "b"].map((value) => ({ text: words(value), value })),
              },
            },
          ],
        });
      });
      app.action("vm", async ({ ack, body }) => {
        await ack();
        heard.push(body);
      });
    });
    const { ts = "" } = await here.olivia.types("ops", "web-1 is slow");
    await here.amir.picksMessageShortcut("Show the VMs named here", ts);
    await here.amir.until(
      ({ channels }) => channels[0]?.messages[1]?.text === "about: web-1 is slow",
    );
    await here.amir.chooses("vm", "b");
    expect(heard).toMatchObject([
      {
        actions: [{ type: "static_select", selected_option: { value: "b" } }],
        message: { text: "about: web-1 is slow" },
      },
    ]);
  });
});
