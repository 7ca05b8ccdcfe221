// Functions of real numbers that give the same bits on every processor: the C library chooses variants by
// processor, so results that reach the logits never come from it. Only + - * / sqrt and (float) fma are used.
#pragma once

namespace quipu::exact_math {

// Double precision, for tables (rotation angles, YaRN, ALiBi) and samplers. Errors: exp, log and pow are
// within 1 ulp of the exact value where the result is normal; sin and cos within 1 ulp for |x| < 1e9.

/// NaN stays NaN, exp(-inf) = 0, exp(inf) = inf.
double exp(double x);
/// log(0) = -inf; NaN below 0.
double log(double x);
/// `base` to the power `exponent`, for base >= 0: pow(0, y) is 0, 1 or inf by the sign of y. NaN for a
/// negative base. pow(x, 0) is 1 for every x.
double pow(double base, double exponent);

struct SinCos {
  double sin = 0;
  double cos = 0;
};
/// Of an angle in radians. Angles of 1e9 and more are first reduced by the double nearest to 2 pi: defined,
/// but not accurate. NaN for infinities and NaN.
SinCos sin_cos(double x);

// Single precision: softmax, sigmoid, SiLU, GELU, soft-cap. Vector kernels repeat these formulas lane by lane
// (kernels/<isa>/vector_math.h) and must give the same bits, so a change here is a change there.

/// exp(x) = 2^n (1 + r (1 + r q(r))), where n = x / ln 2 rounded to the nearest (ties to even) and
/// r = x - n ln 2. The numbers are shared with the vector kernels.
struct ExpF32 {
  static constexpr float kOverflow = 0x1.62e42ep+6f;    ///< largest x with a finite result
  static constexpr float kUnderflow = -0x1.5d589ep+6f;  ///< least x with a normal result; 0 below it
  static constexpr float kLog2E = 0x1.715476p+0f;
  static constexpr float kRound = 0x1.8p+23f;  ///< adding it leaves n in the low bits of the sum
  static constexpr float kLn2High = 0x1.62e43p-1f;
  static constexpr float kLn2Low = -0x1.05c61p-29f;
  /// q, minimax in the relative error of expm1 on |r| <= ln 2 / 2: 1.5e-8.
  static constexpr float kQ[5] = {0x1p-1f, 0x1.5554aap-3f, 0x1.5554fp-5f, 0x1.122ba2p-7f, 0x1.6d43d2p-10f};
};

/// Under 1 ulp where the result is normal. Below ln(2^-126) exactly 0; exp_f32(0) = 1; NaN stays NaN.
float exp_f32(float x);

/// tanh(x) = e / (e + 2) with e = exp(2 |x|) - 1 = 2^n (r + r^2 q(r)) + (2^n - 1), from |x| = kTanhLimit on
/// that limit's value, 1. Relative error under 3 ulp, also near 0.
inline constexpr float kTanhLimit = 10.0f;
float tanh_f32(float x);

/// 1 / (1 + exp(-x)).
float sigmoid_f32(float x);
/// log(1 + exp(x)), x itself above 20; from double precision.
float softplus_f32(float x);
/// x / (1 + exp(-x)).
float silu_f32(float x);

/// The tanh form of GELU, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as x / (1 + exp(-u)) with
/// u = x (kGelu1 + kGelu3 x^2), which is the same and loses nothing for negative x.
inline constexpr float kGelu1 = 0x1.988454p+0f;
inline constexpr float kGelu3 = 0x1.2444f2p-4f;
float gelu_tanh_f32(float x);

}  // namespace quipu::exact_math
