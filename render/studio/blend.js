// A faster program for p5.brush's blend pass, built from the library's own shader text when it is compiled.
//
// The library mixes paper and pigment by Kubelka-Munk over 38 bands of reflectance, for every pixel:
//   K/S(R) = (1 - R)^2 / 2R,   R(k) = 1 + k - sqrt(k^2 + 2k),   k = mean of both K/S weighted by c = factor^2 luminance.
// The same formulas here, with less work:
//   the pigment is the same for the whole pass: its bands and its luminance come from the vertex stage;
//   the paper's luminance is one dot product of its seven basis weights (dark papers apart, where bands are clamped);
//   squares instead of pow, texel fetches instead of filtered samples;
//   bands whose seven coefficients are nearly equal are merged (both ends of the spectrum), their colour weights added;
//   bands to XYZ to RGB is one matrix;
//   what need not run stands in a loop of zero or one turns, because llvmpipe jumps out of loops but not over branches.
// Derivatives: the library takes those of the mask after it has left the program for pixels without paint, where they are
// undefined: each rasterizer gives others, and SwiftShader a few that change from time to time. The program here takes
// what the stock set-up gives in nearly all cases, on every rasterizer and every time: differences inside the block of
// 2 x 2 pixels that a pixel belongs to, at the block's first corner, and for a pixel without paint the tap at which the
// loops of the pixels before it ended, (4, 4).
//
// No coefficient stands here: all are read from the library's text. The rest of that text is pinned by a hash; when it
// differs, or when the taps cannot be read, the library's program is used and the result says so.
"use strict";
(() => {
  const SKELETON = 3845648034;
  const TOLERANCE = 0.002; // largest difference of a coefficient inside one merged band
  const NUMBER = "([0-9.]+)";
  const BASIS = ["w", "c", "m", "y", "r", "g", "b"];
  const sum = BASIS.map((name) => `${name}\\*${NUMBER}`).join("\\+");
  const REFLECTANCE = new RegExp(`R\\[ ?\\d+\\]=max\\(SPECTRAL_EPSILON,${sum}\\);`, "g");
  const RESPONSE = new RegExp(`xyz\\+=R\\[ ?\\d+\\]\\*vec3\\(${NUMBER},${NUMBER},${NUMBER}\\);`, "g");
  const MATRIX = /XYZ_RGB\[\d\]=vec3\((-?[0-9.]+),(-?[0-9.]+),(-?[0-9.]+)\);/g;

  // FNV-1a, 32 bits.
  const hash = (text) => {
    let h = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
    return h >>> 0;
  };
  const numbers = (text, pattern) => [...text.matchAll(pattern)].map((match) => match.slice(1).map(Number));
  const glsl = (x) => {
    const digits = x.toPrecision(9);
    return /[.e]/.test(digits) ? digits : `${digits}.0`;
  };

  // rows: { basis: 7 coefficients, response: X, Y, Z }. A merged band's coefficients are means weighted by response.
  const merged = (rows) => {
    const groups = [];
    for (const row of rows) {
      const group = groups.at(-1);
      const near = group?.every((other) => other.basis.every((x, k) => Math.abs(x - row.basis[k]) <= TOLERANCE));
      if (near) group.push(row);
      else groups.push([row]);
    }
    return groups.map((group) => {
      const total = [0, 1, 2].map((k) => group.reduce((a, row) => a + row.response[k], 0));
      const weights = group.map((row) => row.response.reduce((a, x) => a + x, 0));
      const weight = weights.reduce((a, x) => a + x, 0);
      const basis = BASIS.map((_, k) => group.reduce((a, row, i) => a + row.basis[k] * weights[i], 0) / weight);
      return { basis, response: total };
    });
  };

  const shared = (bands, epsilon) => {
    const dot = (values) => BASIS.map((name, k) => `s.${name}*${glsl(values[k])}`).join("+");
    const luminance = BASIS.map((_, k) => bands.reduce((a, band) => a + band.basis[k] * band.response[1], 0));
    return `
struct Spectrum { float w, c, m, y, r, g, b; };
float uncompand(float x) { return x < 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4); }
Spectrum spectrum(vec3 srgb) {
  vec3 l = vec3(uncompand(srgb.r), uncompand(srgb.g), uncompand(srgb.b));
  float w = min(l.r, min(l.g, l.b));
  l -= w;
  return Spectrum(w, min(l.g, l.b), min(l.r, l.b), min(l.r, l.g),
    min(max(0.0, l.r - l.b), max(0.0, l.r - l.g)),
    min(max(0.0, l.g - l.b), max(0.0, l.g - l.r)),
    min(max(0.0, l.b - l.g), max(0.0, l.b - l.r)));
}
float absorption(float R) { float a = 1.0 - R; return a * a / (2.0 * R); }
${bands.map((band, i) => `float reflectance${i}(Spectrum s) { return max(${glsl(epsilon)}, ${dot(band.basis)}); }`).join("\n")}
float luminance(Spectrum s) {
  float light = ${dot(luminance)};
  for (int dim = light < 0.05 ? 0 : 1; dim < 1; dim++) {
    light = ${bands.map((band, i) => `reflectance${i}(s) * ${glsl(band.response[1])}`).join(" + ")};
  }
  return light;
}
`;
  };

  const vertexText = (bands, epsilon) => `#version 300 es
precision highp float;
uniform vec3 u_color;
out vec2 p;
${bands.map((_, i) => `flat out float pigment${i};`).join("\n")}
flat out float pigmentLuminance;
${shared(bands, epsilon)}
void main() {
  vec3 v = vec3(-1);
  v[gl_VertexID] = 3.;
  p = v.xy;
  gl_Position = vec4(v.x, -v.y, 0, 1);
  Spectrum s = spectrum(u_color);
  pigmentLuminance = luminance(s);
  ${bands.map((_, i) => `pigment${i} = absorption(reflectance${i}(s));`).join("\n  ")}
}
`;

  const fragmentText = (bands, epsilon, toRGB) => {
    const rgb = bands.map((band) => toRGB.map((row) => row.reduce((a, x, k) => a + x * band.response[k], 0)));
    const each = (line) => bands.map((_, i) => line(i)).join("\n      ");
    return `#version 300 es
precision highp float;
uniform bool u_isBrush;
uniform bool u_targetIsFramebuffer;
uniform sampler2D u_source;
uniform sampler2D u_mask;
uniform vec3 u_color;
in vec2 p;
${bands.map((_, i) => `flat in float pigment${i};`).join("\n")}
flat in float pigmentLuminance;
out vec4 outColor;
${shared(bands, epsilon)}
float masked(ivec2 texel) { return texelFetch(u_mask, clamp(texel, ivec2(0), textureSize(u_mask, 0) - 1), 0).a; }
float compand(float x) { return x < 0.0031308 ? x * 12.92 : 1.055 * pow(x, 1.0 / 2.4) - 0.055; }
void main() {
  vec2 uv = 0.5 * p + 0.5;
  vec2 flipped = vec2(uv.x, 1.0 - uv.y);
  ivec2 maskSize = textureSize(u_mask, 0);
  ivec2 maskTexel = ivec2(floor((u_targetIsFramebuffer ? flipped : uv) * vec2(maskSize)));
  vec4 source = texelFetch(u_source, ivec2(floor(flipped * vec2(textureSize(u_source, 0)))), 0);
  float a = texelFetch(u_mask, maskTexel, 0).a;
  float intensity = min(a, 1.0);
  if (!u_isBrush) {
    ivec2 odd = ivec2(gl_FragCoord.xy) & 1;
    int up = u_targetIsFramebuffer ? 1 : -1;
    ivec2 corner = maskTexel - ivec2(odd.x, up * odd.y);
    bvec3 painted = greaterThan(
      vec3(masked(corner), masked(corner + ivec2(1, 0)), masked(corner + ivec2(0, up))), vec3(0.0));
    float edge = 0.0;
    for (int i = -2; i <= 2; i += 2) {
      for (int j = -2; j <= 2; j += 2) {
        float here = masked(corner + (painted.x ? ivec2(i, j) : ivec2(4)));
        float beside = masked(corner + ivec2(1, 0) + (painted.y ? ivec2(i, j) : ivec2(4)));
        float above = masked(corner + ivec2(0, up) + (painted.z ? ivec2(i, j) : ivec2(4)));
        edge += smoothstep(0.05, 0.35, length(15.0 * vec2(beside - here, above - here)));
      }
    }
    intensity = clamp(a + edge / 9.0 * 0.1, 0.0, 1.0);
  }
  outColor = source;
  for (int empty = a == 0.0 ? 1 : 0; empty < 1; empty++) {
    Spectrum s = spectrum(mix(vec3(1.0), source.rgb, source.a));
    float light = pigmentLuminance;
    ${bands.map((_, i) => `float k${i} = pigment${i};`).join("\n    ")}
    for (int dark = u_isBrush && a > 0.7 ? 0 : 1; dark < 1; dark++) {
      float blacken = 0.5 * (min(a, 1.0) - 0.7);
      Spectrum d = spectrum(max(u_color * (1.0 - blacken) - vec3(0.5) * blacken, vec3(0.0)));
      light = luminance(d);
      ${each((i) => `k${i} = absorption(reflectance${i}(d));`)}
    }
    float c1 = (1.0 - intensity) * (1.0 - intensity) * luminance(s);
    float c2 = intensity * intensity * light;
    float share = c2 / (c1 + c2);
    vec3 rgb = vec3(0.0);
    ${each((i) => `{ float k = mix(absorption(reflectance${i}(s)), k${i}, share); rgb += (1.0 + k - sqrt(k * k + 2.0 * k)) * vec3(${rgb[i].map(glsl).join(", ")}); }`)}
    outColor = vec4(clamp(vec3(compand(rgb.r), compand(rgb.g), compand(rgb.b)), 0.0, 1.0), 1.0);
  }
}
`;
  };

  // -> [vertex text, fragment text], or null with the reason in studio.warnings.
  studio.faster = (vertex, fragment) => {
    if (!studio.settings.patches.includes("blend")) return null;
    const basis = numbers(fragment, REFLECTANCE);
    const response = numbers(fragment, RESPONSE);
    const toRGB = numbers(fragment, MATRIX);
    const epsilon = Number(/SPECTRAL_EPSILON=([0-9.]+)/.exec(fragment)?.[1]);
    const skeleton = hash(vertex + fragment.replace(REFLECTANCE, "").replace(RESPONSE, "").replace(MATRIX, ""));
    if (basis.length === 0 || basis.length !== response.length || toRGB.length !== 3 || skeleton !== SKELETON) {
      studio.warnings.push(
        `p5.brush's blend shader is not the one that is known (hash ${skeleton}): its own, slower one is used`,
      );
      return null;
    }
    const bands = merged(basis.map((row, i) => ({ basis: row, response: response[i] })));
    studio.applied.push("blend");
    studio.bands = bands.length;
    return [vertexText(bands, epsilon), fragmentText(bands, epsilon, toRGB)];
  };
})();
