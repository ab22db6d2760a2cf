import { describe, expect, it } from "vitest";
import { issueTrigger } from "../../../sandbox/slack/state/views.ts";
import { startSlack } from "./start-slack.ts";
import { type Fields, fieldsOf, textOf } from "../../../sandbox/slack/fields.ts";
import { callApi } from "./call-api.ts";

const plain = (text: string) => ({ type: "plain_text", text });
const input = (block_id: string, element: Fields, more: Fields = {}) => ({
  type: "input",
  block_id,
  label: plain(block_id),
  element: { action_id: "a", ...element },
  ...more,
});
const modal = (blocks: Fields[] = [{ type: "divider" }], more: Fields = {}) => ({
  type: "modal",
  title: plain("Title"),
  submit: plain("Go"),
  blocks,
  ...more,
});

async function world() {
  let clock = 1_795_000_000_000;
  const slack = await startSlack({
    rateLimits: "off",
    now: () => clock,
    app: { triggerLifeMs: 3_000 },
  });
  const trigger = (fromViewId?: string) => issueTrigger(slack.workspace, "U0OLIVIA", fromViewId);
  return {
    slack,
    olivia: slack.person("olivia"),
    trigger,
    open: (view: Fields, trigger_id = trigger()) =>
      callApi(slack, "views.open", { trigger_id, view }),
    wait: (ms: number) => {
      clock += ms;
    },
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

describe("a modal", () => {
  it("opens once per trigger, within three seconds", async () => {
    await using here = await world();
    const [used, late] = [here.trigger(), here.trigger()];
    expect(await here.open(modal(), used)).toMatchObject({
      ok: true,
      view: { root_view_id: expect.any(String) },
    });
    expect(await here.open(modal(), used)).toMatchObject({ error: "exchanged_trigger_id" });
    here.wait(3001);
    expect(await here.open(modal(), late)).toMatchObject({ error: "expired_trigger_id" });
    expect(await here.open(modal(), "1.2.3")).toMatchObject({ error: "invalid_trigger_id" });
  });

  it.for<[string, Fields, string]>([
    [
      "without a title",
      { type: "modal", blocks: [] },
      "missing required field: title [json-pointer:/view]",
    ],
    [
      "with a title of 25 characters",
      modal([], { title: plain("x".repeat(25)) }),
      "must be less than 25 characters [json-pointer:/view/title/text]",
    ],
    [
      "with an input but no submit",
      { type: "modal", title: plain("a"), blocks: [input("i", { type: "plain_text_input" })] },
      "missing required field: submit",
    ],
    [
      "with 3001 characters of private metadata",
      modal([], { private_metadata: "x".repeat(3001) }),
      "must be less than 3001 characters",
    ],
    [
      "with 101 blocks",
      modal(Array.from({ length: 101 }, () => ({ type: "divider" }))),
      "no more than 100 items allowed",
    ],
    ["with a table", modal([{ type: "table", rows: [] }]), "not supported in a modal"],
    [
      "with an unknown property",
      modal([], { colour: "red" }),
      "invalid additional property: colour",
    ],
  ])("is refused %s", async ([, view, complaint]) => {
    await using here = await world();
    const answer = await here.open(view);
    expect(answer).toMatchObject({ ok: false, error: "invalid_arguments" });
    expect(JSON.stringify(answer["response_metadata"])).toContain(complaint);
  });

  it("is too large over 250 kB, and its external id is unique", async () => {
    await using here = await world();
    const large = Array.from({ length: 90 }, () => ({
      type: "section",
      text: plain("x".repeat(2900)),
    }));
    expect(await here.open(modal(large))).toMatchObject({ error: "view_too_large" });
    expect(await here.open(modal([], { external_id: "mine" }))).toMatchObject({ ok: true });
    const home = { type: "home", blocks: [], external_id: "mine" };
    expect(
      await callApi(here.slack, "views.publish", { user_id: "U0VERA", view: home }),
    ).toMatchObject({ error: "duplicate_external_id" });
  });

  it("is updated only with the latest hash, and keeps what was entered", async () => {
    await using here = await world();
    const { view } = await here.open(modal([input("name", { type: "plain_text_input" })]));
    const { id, hash } = fieldsOf(view);
    await here.olivia.chooses("name", "web-1");
    const update = (more: Fields) =>
      callApi(here.slack, "views.update", {
        view_id: id,
        view: modal([
          input("name", { type: "plain_text_input", initial_value: "other" }),
          { type: "divider" },
        ]),
        ...more,
      });
    expect(await update({ hash })).toMatchObject({ ok: true, view: { id } });
    expect(await update({ hash })).toMatchObject({ error: "hash_conflict" });
    expect(await update({ view_id: "V0NONE" })).toMatchObject({ error: "not_found" });
    expect(here.olivia.sees().modals[0]?.state).toMatchObject({ name: { a: { value: "web-1" } } });
  });

  it("stacks three at most, and only from within itself", async () => {
    await using here = await world();
    expect(
      await callApi(here.slack, "views.push", { trigger_id: here.trigger(), view: modal() }),
    ).toMatchObject({ error: "invalid_trigger_id" });
    const { view } = await here.open(modal());
    const id = textOf(fieldsOf(view)["id"]);
    const push = () =>
      callApi(here.slack, "views.push", { trigger_id: here.trigger(id), view: modal() });
    expect(await push()).toMatchObject({
      ok: true,
      view: { root_view_id: id, previous_view_id: id },
    });
    expect(await push()).toMatchObject({ ok: true });
    expect(await push()).toMatchObject({ error: "push_limit_reached" });
    await here.olivia.closes({ all: true });
    expect(here.olivia.sees().modals).toEqual([]);
  });

  it("lets the client refuse what its inputs forbid, before anything is sent", async () => {
    await using here = await world();
    await here.open(
      modal([
        input("count", {
          type: "number_input",
          is_decimal_allowed: false,
          min_value: "1",
          max_value: "8",
        }),
        input("reason", { type: "plain_text_input", min_length: 3 }),
        input("mail", { type: "email_text_input" }, { optional: true }),
        input("when", { type: "datepicker" }, { optional: true }),
      ]),
    );
    const tries = async (values: Parameters<typeof here.olivia.submits>[0]) =>
      (await here.olivia.submits(values)).errors;
    expect(await tries({})).toEqual({ count: expect.any(String), reason: expect.any(String) });
    expect(await tries({ count: "1e9", reason: "ab" })).toEqual({
      count: "Please enter a valid number.",
      reason: "Please enter at least 3 characters.",
    });
    expect(await tries({ count: "1.5", reason: "abc", mail: "x" })).toEqual({
      count: "Please enter a whole number.",
      mail: expect.any(String),
    });
    expect(await tries({ count: "9", mail: null })).toEqual({
      count: "Please enter a number of at most 8.",
    });
    expect(here.slack.deliveries()).toEqual([]);
    expect(await here.olivia.submits({ count: "8" })).toMatchObject({
      acked: false,
      error: "dispatch_failed",
    });
    expect(here.slack.deliveries()).toMatchObject([
      {
        payload: {
          type: "view_submission",
          view: {
            state: { values: { count: { a: { value: "8" } }, mail: { a: { value: null } } } },
          },
        },
      },
    ]);
    expect(here.olivia.sees()).toMatchObject({
      modals: [{ title: "Title" }],
      toasts: [{ text: "We had some trouble connecting. Try again?" }],
    });
  });
});
