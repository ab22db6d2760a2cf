import { shortened } from "../messages/markdown.ts";
import { menuRow } from "../messages/parts.ts";
import { runButton } from "./define.ts";

// Buttons for messages that aren't the answer to a command. Each runs a command as if it had been
// typed.

export const showVm = ({ id, name }: { id: string; name: string }) =>
  runButton("Show", "vm.show", { vm: id }, name);

/** Says what is wrong with the VM, where the feature is there that does. */
export const whyVm = ({ id, name }: { id: string; name: string }) =>
  runButton("Why?", "gatehouse.why", { request: id }, name);

/** A menu that opens one VM of a list. */
export const showOneOf = (vms: readonly { id: string; name: string; projectName?: string }[]) =>
  menuRow({
    label: "Show a VM…",
    action: "run:vm.show",
    options: vms.map(({ id, name: called, projectName }) => [
      shortened(projectName === undefined ? called : `${called} in ${projectName}`, 75),
      JSON.stringify({ vm: id }),
    ]),
  });

/** `about` was requested: `vm restart web-2`. */
export const showRequest = (request: string, about: string, label = "Details") =>
  runButton(label, "gatehouse.why", { request }, about);
