import {
  type EvidenceWeatherName,
  ledgerImage,
  type SandboxCompute,
} from "../sandbox/compute/index.ts";
import type { Lever } from "../sandbox/page/index.ts";

const vm = "ledger-1";

/** What may be wrong with the evidence of a VM that is as it should be; none where the world has no such VM. */
export function evidenceLevers({
  compute,
  endorse,
}: {
  compute: SandboxCompute;
  endorse: (weather: EvidenceWeatherName) => Promise<void>;
}): readonly Omit<Lever, "as" | "channel">[] {
  if (Object.values(compute.truth().vms).every(({ name }) => name !== vm)) return [];
  const machine = (weather: EvidenceWeatherName): Pick<Lever, "isOn" | "turn"> => {
    let on = false;
    return {
      isOn: () => on,
      turn: (wanted) => {
        on = wanted;
        compute.edit.setMachine({ vm, image: ledgerImage });
        compute.edit.setEvidence({ vm, weather: on ? weather : "clear" });
      },
    };
  };
  let hasRunOut = false;
  return [
    {
      id: "image",
      label: `Another image on ${vm}`,
      tries: { text: `/vm attest ${vm}` },
      holds: "Failed: it matches no pin. The service still says verified.",
      ...machine("other-image"),
    },
    {
      id: "debugging",
      label: `Debugging on for ${vm}`,
      tries: { text: `/vm attest ${vm}` },
      holds: "Failed: its host can read its memory. No console, no rollout.",
      ...machine("debugged"),
    },
    {
      id: "lists",
      label: "AMD's revocation list ran out",
      tries: { text: `/vm attest ${vm}` },
      holds: "Could not verify. One alarm for all VMs behind it, not one each.",
      isOn: () => hasRunOut,
      turn: (on) => {
        hasRunOut = on;
        return endorse(on ? "lists-ran-out" : "clear");
      },
    },
  ];
}
