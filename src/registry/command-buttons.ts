import { type ButtonSpec, menu } from "../messages/message.ts";

// Buttons for messages that aren't the answer to a command. Each runs a command as if it had been
// typed.

const button = (label: string, command: string, input: Record<string, unknown>): ButtonSpec => ({
  label,
  action: `run:${command}`,
  value: JSON.stringify(input),
});

export const showVm = (vm: string) => button("Show", "vm.show", { vm });

/** Says what is wrong with the VM, where the feature is there that does. */
export const whyVm = (vm: string) => button("Why?", "gatehouse.why", { request: vm });

/** A menu that opens one VM of a list. */
export const showOneOf = (vms: readonly { id: string; name: string; projectName?: string }[]) =>
  menu({
    label: "Show a VM…",
    action: "run:vm.show",
    options: vms.map(({ id, name: called, projectName }) => [
      projectName === undefined ? called : `${called} in ${projectName}`,
      JSON.stringify({ vm: id }),
    ]),
  });

export const showRequest = (request: string, label = "Details") =>
  button(label, "gatehouse.why", { request });
