/** Set-up cannot go on: what is missing, and the one line that would fix it. Shown to a person as it is. */
export class SetupError extends Error {
  readonly fix: string;

  constructor(message: string, fix: string, options?: ErrorOptions) {
    super(`${message}\n  Fix: ${fix}`, options);
    this.name = 'SetupError';
    this.fix = fix;
  }
}
