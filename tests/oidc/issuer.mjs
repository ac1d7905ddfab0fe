// An issuer for the tests: npm's oidc-provider on loopback, changed by lines of JSON on stdin, each answered on stdout.
// Usage: node issuer.mjs <folder of oidc-provider>. It ends when stdin does.

import { createPublicKey, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const { Provider } = await import(pathToFileURL(`${process.argv[2]}/lib/index.js`));
const { createMemoryAdapter } = await import(pathToFileURL(`${process.argv[2]}/lib/adapters/memory_adapter.js`));

// A provider's keys are fixed: a change builds a new one, which finds here what the last one knew.
const adapter = createMemoryAdapter();

const settings = {
  auto: true, // sign people in without a question
  account: 'ada', // who is signed in then
  accessSeconds: 600,
  refreshSeconds: 3600,
  scopes: 'openid profile email offline_access office read write admin',
  audience: null, // the audience of every token; otherwise the resource that was asked for
  defaultResource: null, // for clients that ask for no resource: they get a JWT for this one
  format: 'jwt',
};
const accounts = {
  ada: { name: 'Ada Lovelace', email: 'ada@example.com', groups: ['staff', 'admins'] },
  eve: { name: 'Eve', email: 'eve@example.com', groups: [] },
};
const clients = [];
const hits = {};
const grants = [];
const cookieKeys = [randomBytes(16).toString('hex')];
let keys = [makeKey()];
let issuer;
let provider;
let callback;
let delay = 0;

function makeKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
}

async function loadExistingGrant(ctx) {
  const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
  const { scope = '', resource = settings.defaultResource ?? [] } = ctx.oidc.params;
  grant.addOIDCScope(`openid offline_access ${scope}`);
  for (const each of [resource].flat()) grant.addResourceScope(each, scope);
  await grant.save();
  grants.push(grant);
  return grant;
}

function build() {
  provider = new Provider(issuer, {
    adapter,
    clients,
    jwks: { keys },
    cookies: { keys: cookieKeys },
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email'] },
    scopes: settings.scopes.split(' '),
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, ...accounts[id] }) }),
    extraTokenClaims: (ctx, token) => accounts[token.accountId] ?? {},
    loadExistingGrant,
    rotateRefreshToken: true,
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async () => false,
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: (ctx, client) => client.clientAuthMethod === 'none' },
    ttl: {
      AccessToken: () => settings.accessSeconds,
      ClientCredentials: () => settings.accessSeconds,
      RefreshToken: () => settings.refreshSeconds,
      AuthorizationCode: 60, DeviceCode: 600, IdToken: 600, Interaction: 600, Session: 86400, Grant: 86400,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      registrationManagement: { enabled: true },
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: async (ctx, client, oneOf) => oneOf ?? settings.defaultResource ?? undefined,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (ctx, resource) => ({
          scope: settings.scopes,
          audience: settings.audience ?? resource,
          accessTokenTTL: settings.accessSeconds,
          accessTokenFormat: settings.format,
          jwt: { sign: { alg: keys[0].alg } },
        }),
      },
    },
  });
  callback = provider.callback();
}

async function body(request) {
  let text = '';
  for await (const part of request) text += part;
  return new URLSearchParams(text);
}

async function interact(request, response) {
  const { prompt, params } = await provider.interactionDetails(request, response);
  if (request.method === 'GET' && !settings.auto) {
    response.setHeader('content-type', 'text/html');
    response.end(`<title>Sign in</title><form method="post"><p>${encodeURIComponent(params.client_id ?? '')} (${prompt.name})</p>
      <label>Account <input name="account" value="${settings.account}"></label>
      <button name="answer" value="yes">Sign in</button> <button name="answer" value="no">Refuse</button></form>`);
    return;
  }
  const form = request.method === 'POST' ? await body(request) : new URLSearchParams();
  const result = form.get('answer') === 'no'
    ? { error: 'access_denied', error_description: 'the person refused' }
    : { login: { accountId: form.get('account') ?? settings.account }, consent: {} };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

async function serve(request, response) {
  const { pathname } = new URL(request.url, issuer);
  hits[pathname] = (hits[pathname] ?? 0) + 1;
  if (delay) await new Promise((done) => { setTimeout(done, delay * 1000); });
  if (!pathname.startsWith('/interaction/')) return callback(request, response);
  try {
    return await interact(request, response);
  } catch (error) {
    response.statusCode = 400;
    return response.end(String(error.message));
  }
}

const server = createServer(serve);
const listen = (port) => new Promise((done) => { server.listen(port, '127.0.0.1', done); });

const commands = {
  set: (change) => { Object.assign(settings, change); build(); return {}; },
  account: ({ name, claims }) => { accounts[name] = claims; return {}; },
  client: (client) => { clients.push(client); build(); return {}; },
  // The new key signs from now on. With `keep` the old ones can still be used to check.
  rotate: ({ keep = true }) => { keys = [makeKey(), ...(keep ? keys : [])]; build(); return { kid: keys[0].kid }; },
  // Both parts of the key that signs, for tests that forge tokens.
  key: () => ({
    kid: keys[0].kid,
    pem: createPublicKey({ key: keys[0], format: 'jwk' }).export({ type: 'spki', format: 'pem' }),
    jwk: keys[0],
  }),
  hits: () => hits,
  delay: ({ seconds }) => { delay = seconds; return {}; },
  down: () => new Promise((done) => { server.close(() => done({})); server.closeAllConnections(); }),
  up: async () => { await listen(new URL(issuer).port); return {}; },
  // What a person gave to programs is withdrawn: their refresh tokens are worth nothing any more.
  revoke: async ({ account }) => {
    for (const grant of grants.filter((each) => each.accountId === account)) {
      await provider.RefreshToken.revokeByGrantId(grant.jti);
      await grant.destroy();
    }
    return {};
  },
};

console.warn = () => {};
console.info = () => {};
await listen(0);
issuer = `http://127.0.0.1:${server.address().port}`;
build();
process.stdout.write(`${JSON.stringify({ issuer })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...rest } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await commands[command](rest))}\n`);
}
process.exit(0);
