import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { stretchDeadlines } from "../../src/deadline.ts";
import { type Reading, startReading } from "./reading.ts";
import { buttonsOf, complaintsOf, shownText } from "./shown-text.ts";

/** What changes from run to run. */
const steady = (text: string) => text.replaceAll(/read \d+ s ago/g, "read just now");

/** The demo's fleet, and none; whoever changes one starts their own. */
let demo: Reading;
let empty: Reading;
beforeAll(async () => {
  [demo, empty] = await Promise.all([startReading(), startReading({ world: "empty" })]);
});
afterAll(async () => {
  for (const reading of [demo, empty]) await reading[Symbol.asyncDispose]();
});

describe("/vm list", () => {
  it("shows all VMs, those in trouble first, and how old that is", async () => {
    const list = await demo.reads("vm list");
    expect(steady(shownText(list))).toBe(
      [
        "*8 VMs*: 1 ERROR, 2 STOPPED, 5 RUNNING",
        "VM | Status | Project | Region | CPU | Memory",
        "🔴 train-7 | ERROR | ml | us-east-1 | 16 | 64",
        "⚪ gpu-1 | STOPPED | ml | us-east-1 | 16 | 64",
        "⚪ worker-1 | STOPPED | staging | eu-central-1 | 2 | 8",
        "🟢 db-1 | RUNNING | payments | eu-west-1 | 16 | 64",
        "🟢 vault-1 | RUNNING | vault | eu-west-1 | 2 | 8",
        "🟢 payments/web-1 | RUNNING | payments | eu-west-1 | 4 | 16",
        "🟢 staging/web-1 | RUNNING | staging | eu-central-1 | 2 | 8",
        "🟢 web-2 | RUNNING | payments | eu-west-1 | 4 | 16",
        "[Show a VM…]",
        "Statuses read just now.",
      ].join("\n"),
    );
    expect(list.text).toBe("8 VMs: 1 ERROR, 2 STOPPED, 5 RUNNING");
    expect(complaintsOf(list)).toEqual([]);
  });

  it("has another sign for a VM that runs and can't be verified, and says why", async () => {
    const lacking = new Map([["vm-payments-db-1", "AMD's revocation list has expired"]]);
    await using reading = await startReading({
      drift: {
        failing: async () => new Map(),
        unverifiable: async () => lacking,
        failure: async () => undefined,
        verifiedAt: async () => undefined,
      },
    });
    for (const words of ["vm list payments", "project show payments"]) {
      const list = shownText(await reading.reads(words));
      expect(list).toMatch(/\n❔ db-1 \| RUNNING, can't be verified \|/);
      expect(list).toContain("❔ `db-1` can't be verified: AMD's revocation list has expired.");
    }
  });

  it("names its filters", async () => {
    expect(shownText(await demo.reads("vm list payments"))).toMatch(
      /^\*3 VMs\* in `payments`: 3 RUNNING\n/,
    );
    expect(shownText(await demo.reads("vm list staging —status stopped"))).toMatch(
      /^\*1 VM\* in `staging` with status STOPPED: 1 STOPPED\n[^\n]*\n⚪ worker-1 /,
    );
  });

  it("says what there is when nothing matches, and where to look when there is nothing", async () => {
    expect(steady(shownText(await demo.reads("vm list payments --status ERROR")))).toBe(
      "No VMs in `payments` with status ERROR. There are 3 RUNNING.\nStatuses read just now.",
    );
    expect(steady(shownText(await demo.reads("vm list docs-site")))).toBe(
      "No VMs in `docs-site`. `/project list` shows the projects; those of type TEE_VM have VMs.\nStatuses read just now.",
    );
    expect(steady(shownText(await empty.reads("vm list")))).toBe(
      "No VMs. `/project list` shows the projects; those of type TEE_VM have VMs.\nStatuses read just now.",
    );
  });

  it("shows an unknown status as it is, with the trouble", async () => {
    await using at = await startReading();
    at.service.edit.findVm("web-2").status = "MIGRATING";
    await at.inventory.refresh();
    expect(shownText(await at.reads("vm list payments"))).toContain(
      "\n❔ web-2 | MIGRATING | payments",
    );
  });

  it("comes in another order when asked for: names decide between equals, pages fit together", async () => {
    await using at = await startReading();
    const { service } = at;
    for (const [at4, name] of ["big", "tiny", "mid"].entries()) {
      const id = service.edit.addVm({ project: "vault", name });
      service.edit.findVm(id).specs = { cpu: [64, 1, 8][at4] ?? 0, memory: 4, disk: 1 };
    }
    await at.inventory.refresh();
    const names = async (words: string) => {
      const shown = shownText(await at.reads(`vm list ${words}`));
      return [...shown.matchAll(/^\S+ (?:[\w-]+\/)?([\w-]+) \| [A-Z]+ \|/gm)].map(
        ([, name]) => name,
      );
    };
    expect((await names("vault --sort cpu"))[0]).toBe("big");
    expect((await names("vault --sort cpu")).at(-1)).toBe("tiny");
    const byName = await names("--sort name");
    expect(byName).toHaveLength(11);
    expect(byName).toEqual(byName.toSorted((a = "", b = "") => (a < b ? -1 : 1)));
    await expect(at.reads("vm list --sort size")).rejects.toThrow(
      "--sort must be one of trouble, name, project, cpu, memory, newest.",
    );
  });

  it("goes on page by page, and comes as a file", async () => {
    await using at = await startReading();
    for (let index = 0; index < 120; index++)
      at.service.edit.addVm({ project: "vault", name: `box-${String(index).padStart(3, "0")}` });
    await at.inventory.refresh();
    const pages = await Promise.all([1, 2, 3].map((n) => at.reads(`vm list --page ${n}`)));
    expect(pages.map((page) => shownText(page).split(":")[0])).toEqual([
      "*VMs 1 to 50 of 128*",
      "*VMs 51 to 100 of 128*",
      "*VMs 101 to 128 of 128*",
    ]);
    const turning = pages.map((page) =>
      buttonsOf(page).flatMap(({ label, value = "" }) =>
        /^(Next|Previous)/.test(label) ? [[label, JSON.parse(value)]] : [],
      ),
    );
    const to = (page: string) => ({ sort: "trouble", page });
    expect(turning).toEqual([
      [["Next 50", to("2")]],
      [
        ["Previous 50", to("1")],
        ["Next 28", to("3")],
      ],
      [["Previous 50", to("2")]],
    ]);
    const filtered = await at.reads("vm list vault --status running --sort name");
    expect(buttonsOf(filtered).map(({ label, value }) => [label, value])).toContainEqual([
      "Next 50",
      JSON.stringify({ project: "vault", status: "running", sort: "name", page: "2" }),
    ]);
    expect(shownText(await at.reads("vm list --page 9"))).toContain("There are 3 pages.");
    expect(shownText(await at.reads("vm list --csv"))).toContain("All 128 VMs are in a file");
  });

  it("shows the first of many, and how to narrow them", async () => {
    await using at = await startReading();
    for (let index = 0; index < 120; index++)
      at.service.edit.addVm({ project: "vault", name: `box-${String(index).padStart(3, "0")}` });
    await at.inventory.refresh();
    const list = await at.reads("vm list");
    expect(shownText(list)).toMatch(/^\*VMs 1 to 50 of 128\*: 1 ERROR, 2 STOPPED, 125 RUNNING\n/);
    expect(shownText(list)).toContain(
      "\n`/vm list &lt;project&gt;` or `--status ERROR` shows fewer.\n",
    );
    expect(complaintsOf(list)).toEqual([]);
  });

  it("shortens long names in the middle, so that statuses stay in sight", async () => {
    await using at = await startReading();
    const project = at.service.edit.addProject({ name: "y".repeat(300) });
    for (let index = 0; index < 60; index++)
      at.service.edit.addVm({ project, name: `${"x".repeat(50)}-worker-${index}` });
    await at.inventory.refresh();
    const list = await at.reads(`vm list ${project}`);
    const rows = list.blocks.flatMap((block) => (block.type === "data_table" ? block.rows : []));
    expect(rows).toHaveLength(51);
    const shown = shownText(list);
    expect(shown).toMatch(
      /\n🟢 x+…x+-worker-0 \| RUNNING \| y+…y+ \| [^\n]*\n🟢 x+…x+-worker-1 \|/,
    );
    const cells = shown.split("\n").filter((line) => line.startsWith("🟢"));
    expect(new Set(cells.map((line) => Array.from(line.split(" | ")[0] ?? "").length))).toEqual(
      new Set([34]),
    );
    expect(complaintsOf(list)).toEqual([]);
  });

  it("says that it may be old while the service does not answer", async () => {
    await using at = await startReading();
    at.service.weather({ match: "reads", status: 403 });
    await at.inventory.refresh().catch(() => false);
    // An answer waits for a newer list, and none comes
    stretchDeadlines(0.1);
    onTestFinished(() => stretchDeadlines(30));
    expect(shownText(await at.reads("vm list"))).toContain("this may be outdated");
  });
});

describe("/project list", () => {
  it("shows all projects", async () => {
    const list = await demo.reads("project list");
    expect(steady(shownText(list))).toBe(
      [
        "*6 projects*: 6 ACTIVE",
        "Project | Status | Type | Region | ID",
        "🟢 docs-site | ACTIVE | GIT_DEPLOY | eu-west-1 | prj-docs-site",
        "🟢 edge-cache | ACTIVE | CONTAINER | us-east-1 | prj-edge-cache",
        "🟢 ml | ACTIVE | TEE_VM | us-east-1 | prj-ml",
        "🟢 payments | ACTIVE | TEE_VM | eu-west-1 | prj-payments",
        "🟢 staging | ACTIVE | TEE_VM | eu-central-1 | prj-staging",
        "🟢 vault | ACTIVE | TEE_VM | eu-west-1 | prj-vault",
        "Statuses read just now.",
      ].join("\n"),
    );
    expect(complaintsOf(list)).toEqual([]);
  });

  it("turns pages of 50", async () => {
    await using at = await startReading();
    for (let index = 0; index < 60; index++)
      at.service.edit.addProject({ name: `p-${String(index).padStart(2, "0")}` });
    await at.inventory.refresh();
    const first = shownText(await at.reads("project list --type tee_vm"));
    expect(first).toContain("*Projects 1 to 50 of 64*: 64 ACTIVE\n");
    expect(first).toMatch(/\n`--status ERROR` shows fewer\.\n[^]*\n\[Next 14\]$/);
    const second = shownText(await at.reads("project list --type TEE_VM --page 2"));
    expect(second).toContain("*Projects 51 to 64 of 64*");
    expect(second).toMatch(/\n\[Previous 50\]$/);
    expect(second.split("\n").filter((line) => line.includes("ACTIVE | TEE_VM"))).toHaveLength(14);
    expect(shownText(await at.reads("project list --page 3"))).toBe(
      "There are 2 pages. `/project list --page 1` shows the first.",
    );
  });

  it("says what there is when nothing matches", async () => {
    expect(steady(shownText(await demo.reads("project list --status ERROR")))).toBe(
      "No projects match. There are 6 ACTIVE; `/project list` shows them.\nStatuses read just now.",
    );
    expect(steady(shownText(await empty.reads("project list")))).toBe(
      "There are no projects. `/project create` creates one.\nStatuses read just now.",
    );
  });
});

describe("/project show", () => {
  it("shows a project and its VMs, those in trouble first", async () => {
    const shown = await demo.reads("project show ml");
    const steadied = shownText(shown)
      .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "then")
      .replaceAll(/<!date[^>]*>/g, "<!date>");
    expect(steadied).toBe(
      [
        "🟢 *ml* is *ACTIVE*",
        "*Type*\nTEE_VM",
        "*Region*\nus-east-1",
        "*Created*\n<!date>",
        "*Changed*\n<!date>",
        "*2 VMs*: 1 ERROR, 1 STOPPED",
        "VM | Status | CPU | Memory | IP address",
        "🔴 train-7 | ERROR | 16 | 64 | 10.0.0.8",
        "⚪ gpu-1 | STOPPED | 16 | 64 | 10.0.0.7",
        "[Show a VM…]",
        "Read at <!date> · ID `prj-ml`",
        "[List VMs] [Refresh]",
        "[Update] [Delete]",
      ].join("\n"),
    );
    expect(shown.text).toBe("🟢 ml is ACTIVE");
    expect(complaintsOf(shown)).toEqual([]);
  });

  it("says that other types have no VMs", async () => {
    expect(shownText(await demo.reads("project show docs-site"))).toContain(
      "Projects of this type have no VMs.",
    );
  });
});
