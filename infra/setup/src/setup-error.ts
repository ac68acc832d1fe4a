/** Set-up cannot continue. Has the missing part and a one-line fix. Shown to the user as it is. */
export class SetupError extends Error {
  readonly fix: string;

  constructor(message: string, fix: string, options?: ErrorOptions) {
    super(`${message}\n  Fix: ${fix}`, options);
    this.name = 'SetupError';
    this.fix = fix;
  }
}
