import { ShellfleetError } from '@shellfleet/protocol';

export function withoutSharedDirectory(): ShellfleetError {
  const message = "this host reaches its containers over attach, so it cannot share the proxy's socket with one";
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host cannot give a session the network 'limited': ${message}.`,
    {
      issues: [{ path: 'sandbox.network', message }],
    },
  );
}

export function withoutUid(): ShellfleetError {
  const issues = [{ path: 'user', message: 'every uid of this host is in use' }];
  const message = 'Every uid of SHELLFLEET_UIDS is in use on this host.';
  return new ShellfleetError('SANDBOX_UNAVAILABLE', message, { issues });
}
