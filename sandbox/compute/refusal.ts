/** The service says no. */
export class Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  constructor(status: number, code: string, message: string) {
    this.status = status;
    this.code = code;
    this.message = message;
  }
}
