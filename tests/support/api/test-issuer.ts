import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

/** An OpenID Connect issuer on loopback, with one key. */
export interface TestIssuer extends Disposable {
  readonly url: string;
  sign(claims: JWTPayload): Promise<string>;
}

export async function startIssuer(): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }];
  const server = createServer((request, response) => {
    const document = { issuer: url, jwks_uri: `${url}/keys` };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.url === '/keys' ? { keys } : document));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    sign: (claims) =>
      new SignJWT({ iss: url, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(privateKey),
    [Symbol.dispose]: () => void server.close(),
  };
}
