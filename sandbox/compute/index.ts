/** The compute service, how it is arranged, and what can be wrong with it. */
export {
  type SandboxCompute,
  type SandboxComputeOptions,
  startSandboxCompute,
} from "./start-sandbox-compute.ts";
export { evidenceWeather, type EvidenceWeatherName } from "./evidence-weather.ts";
export { launchMeasurement } from "./records.ts";
export { ledgerImage, seedLedger } from "./seed.ts";
export type { ProjectTruth, Truth, VmTruth } from "./truth.ts";
export type { Storm } from "./weather.ts";
