import { fresh, judged, onStage, type Row } from "../row.ts";

/** Typed by olivia, each must change nothing. Backticks and invisible signs around a name are taken off, so they are not here. */
const hostile = [
  "../projects/1",
  "a%2fb",
  "vm-0000-000?x=1",
  "vm-0000-000#x",
  "vm-0000-000\u0000",
  "vm-0000-000 --yes --force",
  "--all",
  "*",
  "x".repeat(10_000),
  "$(reboot)",
  "vm-0000-000;vm-0000-001",
];

const hostileNames: Row = {
  id: "I1",
  fault: "names that mention, link, and break out",
  must: "no one is notified; nothing becomes a link or a mention",
  unknown: "none",
  run: ({ seed }) =>
    onStage({ seed, workers: 1 }, async (stage) => {
      const take = fresh(stage);
      const payloads = [
        "<!channel>",
        "<@U0ADA>",
        "<https://evil.example|console>",
        "```x",
        "a\u202eb",
        "*_~`",
        `<!here> ${"n".repeat(3000)}`,
      ];
      for (const name of payloads) {
        const vm = await take("vm restart");
        await stage.service.edit("renameVm", { vm, name });
        stage.faults += 1;
      }
      await new Promise((resolve) => setTimeout(resolve, 5500));
      const vms = await stage.service.vms();
      for (const vm of vms.filter(({ name }) => payloads.includes(name)))
        await stage.request("vm restart", vm.id);
      await stage.quiet();
      const pings = await stage.slack.act("ada", "mentions");
      // A label for screen readers is no markup: Slack links and mentions nothing in it.
      const isShown = (field: string, value: unknown) =>
        field === "accessibility_label" ? undefined : value;
      const texts = (await stage.slack.messages()).map((one) => JSON.stringify(one, isShown));
      return judged(await stage.check(), [
        [`nobody is notified by a name (${pings.length})`, pings.length === 0],
        [
          "no live link or mention in any message",
          texts.every((text) => !/<!(channel|here)>|<https:\/\/evil|<@U0ADA>/.test(text)),
        ],
      ]);
    }),
};

/** X8 is the same, seen from another side. */
export const changesHands: Row = {
  id: "I4",
  fault: "a name changes hands between the request and the send",
  must: "the request is canceled; neither VM is stopped",
  unknown: "none",
  run: ({ seed }) =>
    onStage({ seed, workers: 1 }, async (stage) => {
      const take = fresh(stage);
      const [a, b] = [await take("vm stop"), await take("vm stop")];
      const [worker] = stage.workers();
      await worker?.arm({ point: "gate", do: "wait" });
      const asked = await stage.request("vm stop", a);
      await worker?.hit("gate");
      await stage.service.edit("renameVm", { vm: a, name: "other" });
      await stage.service.edit("renameVm", { vm: b, name: a });
      stage.faults += 1;
      worker?.go();
      const [request] = await stage.quiet();
      const [onA, onB] = (await stage.service.vms()).filter(({ id }) => id === a || id === b);
      return judged(await stage.check(), [
        [`${asked.target} is cancelled, not ${request?.state}`, request?.state === "cancelled"],
        ["nothing is stopped", onA?.stops === 0 && onB?.stops === 0],
      ]);
    }),
};

export const inputRows: Row[] = [
  hostileNames,
  {
    id: "I2",
    fault: "IDs with slashes, queries, NUL; unknown numbers",
    must: "no request; every call is to a path of the service",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        await fresh(stage)("vm restart");
        for (const words of hostile) {
          await stage.slack.act("olivia", "types", "ops", `/vm stop ${words}`);
          stage.faults += 1;
        }
        for (const number of ["1e9", "-1", "NaN", "0x10", "٣", "1,5", ""]) {
          await stage.slack.act(
            "olivia",
            "types",
            "ops",
            `/vm resize vm-0000-000 --cpu ${number} --memory 8`,
          );
          await stage.slack.act("olivia", "closes", { all: true }).catch(() => undefined);
          stage.faults += 1;
        }
        await stage.quiet();
        const made = await stage.journal();
        const odd = (await stage.service.calls()).filter(
          ({ path }) => !/^\/v1\/(projects|vms)(\/[\w-]+(\/\w+)?)?$/.test(path),
        );
        return judged(await stage.check(), [
          [
            `no request (${made.map(({ command, target, targetName }) => `${command} ${target || targetName}`).join(", ")})`,
            made.length === 0,
          ],
          [
            `every path is one of the service's (${odd.map(({ path }) => path).join(" ")})`,
            odd.length === 0,
          ],
        ]);
      }),
  },
  {
    id: "I3",
    fault: "an ambiguous name",
    must: "no request",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1, vms: 40 }, async (stage) => {
        await stage.service.edit("renameVm", { vm: "vm-0000-003", name: "twin" });
        await stage.service.edit("renameVm", { vm: "vm-0001-003", name: "twin" });
        stage.faults += 1;
        await new Promise((resolve) => setTimeout(resolve, 6000));
        await stage.slack.act("olivia", "types", "ops", "/vm stop twin");
        await new Promise((resolve) => setTimeout(resolve, 500));
        return judged(await stage.check(), [["no request", (await stage.journal()).length === 0]]);
      }),
  },
  changesHands,
  {
    id: "I8",
    fault: "a VM is named like an approval message (run as I1)",
    must: "as in I1",
    unknown: "none",
    run: hostileNames.run,
  },
];
