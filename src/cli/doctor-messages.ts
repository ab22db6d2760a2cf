import type { Config } from "../config/config.ts";
import { countChart, usageCharts } from "../fleet/charts/chart.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import { type Part, card } from "../messages/card.ts";
import { md } from "../messages/markdown.ts";
import { headingOf, menuRow, pairsOf, paragraph, rule, small, waysRow } from "../messages/parts.ts";
import { table } from "../messages/table.ts";
import type { Command } from "../registry/define.ts";
import { renderHelp } from "../registry/help.ts";
import { textInput } from "../messages/inputs.ts";
import { modal } from "../messages/views.ts";
import { reasonInput } from "../talk/form-view.ts";
import { type Rendered, validateBlocks } from "../slack/validate-blocks.ts";
import { type Finding, ill, note, well } from "../messages/finding.ts";

const button = (action: string, more: Partial<ButtonSpec> = {}): ButtonSpec => ({
  label: "Press",
  action,
  value: JSON.stringify({ request: "r-example" }),
  ...more,
});
const confirm = { title: "Restart web-2?", text: "It is interrupted.", confirm: "Restart" };
const samples = [{ timestamp: "2026-01-01T00:00:00Z", value: 1 }];

/** One example of each kind of message that Gatehouse builds. */
export function kindsOfMessages(
  commands: readonly Command[],
): readonly (readonly [called: string, rendered: Rendered])[] {
  const text = md`*web-2* is RUNNING`;
  const posted = (...body: readonly Part[]) => ({ message: { blocks: card({ body }).blocks } });
  const usage = { cpuUsage: samples, memoryUsage: samples, diskUsage: 1 };
  return [
    ["texts", posted(headingOf("Digest"), paragraph(text), pairsOf([["CPU", text]]), small(text))],
    ["help", { message: { blocks: renderHelp(commands, "all").blocks } }],
    ["buttons", posted(paragraph(text, button("a")), waysRow([button("b", { confirm })]), rule)],
    ["menus", posted(paragraph(text, [button("a"), button("b")]), menuRow(chosen))],
    [
      "tables",
      posted(table("VMs", ["Name", "CPU", "Seen"], [["web-2", "4", { at: Date.now() }]]).part),
    ],
    ["charts of lines", posted(usageCharts(usage, "CPU and memory of web-2"))],
    ["charts of bars", posted(countChart("VMs by status", "VMs", ["RUNNING", "STOPPED"]))],
    [
      "forms",
      {
        view: modal(
          "Restore web-2",
          [paragraph(text), textInput("name", "Name", { most: 100 }), reasonInput("Why?")],
          {
            callback: "example",
            metadata: {},
            submit: "Restore",
          },
        ),
      },
    ],
  ];
}

const chosen = {
  label: "Details of one…",
  action: "c",
  options: [["web-2", JSON.stringify({ vm: "vm-1" })]] as const,
};

/** Checks whether Slack accepts each kind of message that Gatehouse builds, without posting any. */
export async function askAboutMessages(
  { slack }: Config,
  commands: readonly Command[],
): Promise<readonly Finding[]> {
  const asked = kindsOfMessages(commands).map(async ([called, rendered]): Promise<Finding> => {
    const answer = await validateBlocks(slack.apiUrl, rendered);
    if (answer.kind === "valid") return well(`${called}: Slack takes them`);
    if (answer.kind === "invalid") {
      const mend = "Gatehouse says it as text instead. Report it to those who maintain Gatehouse.";
      return ill(`${called}: Slack refuses them: ${answer.complaints.join("; ")}`, mend);
    }
    const why = answer.kind === "limited" ? "Slack limits such questions now" : answer.reason;
    return note(`${called}: not asked: ${why}`, "Try again in a minute.");
  });
  return Promise.all(asked);
}
