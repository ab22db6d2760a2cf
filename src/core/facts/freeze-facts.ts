import { atTime, md } from "../../messages/markdown.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { dottedName, runButton } from "../../registry/define.ts";
import type { Journal } from "../request/journal.ts";
import type { FactSource } from "./fact.ts";

/** Says who froze all changes. */
export const freezeFacts = (journal: Pick<Journal, "freezeState">): FactSource => ({
  name: "whether changes are frozen",
  async read({ commands, now }) {
    const freeze = await journal.freezeState();
    if (!freeze) return [];
    const ender = commandWithRole(commands, "ends-freeze");
    const since = freeze.at === 0 ? undefined : freeze.at;
    const when = since === undefined ? "" : md` ${atTime(since, now)}`;
    const reason = freeze.reason === "" ? "" : md`: “${freeze.reason}”`;
    const confirm = {
      title: "Allow changes again?",
      text: "Everyone may then change VMs again.",
      confirm: "Thaw",
    };
    return [
      {
        kind: "freeze",
        severity: "notice",
        sign: "🧊",
        text: md`${freeze.by} froze all changes${when}${reason}.`,
        since,
        blocks: () => "fails",
        next: md`Until the freeze ends, nothing is sent.`,
        ways: ender
          ? [
              {
                command: dottedName(ender),
                button: { ...runButton("Thaw", dottedName(ender), {}), confirm },
                isRecord: true,
              },
            ]
          : [],
      },
    ];
  },
});
